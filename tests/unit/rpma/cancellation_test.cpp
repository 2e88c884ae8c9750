// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// pthread_cancel: a wait that has taken nothing can be cancelled; a call that has begun something completes it.
#include <pthread.h>

#include <functional>

#include "tests/unit/rpma/objects.hpp"

namespace {

Objects o;
int live_before;

int set_up(void**) {
  fake::reset();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  o.make();
  live_before = fake::live();
  return 0;
}

int tear_down(void**) {
  fake::state.cancellation_points = false;
  fake::state.cancelled_with_event = false;
  o.free();
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  rpma_log_set_function(nullptr);
  return fake::live() == 0 && fake::state.wrong.empty() ? 0 : -1;
}

// A call by a thread that is cancelled before it or, if cancelled_with_event is set, in the middle of it.
struct Call {
  std::function<int()> function;
  int result = 1;  // a value that the library never returns
};

void* make_call(void* argument) {
  auto* call = static_cast<Call*>(argument);
  if (!fake::state.cancelled_with_event) pthread_cancel(pthread_self());
  call->result = call->function();
  pthread_testcancel();
  return nullptr;
}

// The result of the call; 1 if the thread did not return from it. The thread was cancelled in both cases.
int cancelled(std::function<int()> function) {
  Call call{std::move(function)};
  pthread_t thread{};
  void* end = nullptr;
  fake::state.cancellation_points = true;
  assert_int_equal(pthread_create(&thread, nullptr, make_call, &call), 0);
  assert_int_equal(pthread_join(thread, &end), 0);
  fake::state.cancellation_points = false;
  fake::state.cancelled_with_event = false;
  assert_ptr_equal(end, PTHREAD_CANCELED);
  return call.result;
}

int wait_on_connection() {
  rpma_cq* found = nullptr;
  return rpma_conn_wait(o.conn, 0, &found, nullptr);
}

int next_event() {
  rpma_conn_event event{};
  return rpma_conn_next_event(o.conn, &event);
}

int next_request() {
  return rpma_ep_next_conn_req(o.ep, nullptr, &o.req);
}

void connect_with_shared_channel() {
  assert_int_equal(rpma_conn_cfg_set_compl_channel(o.cfg, true), 0);
  o.connect(o.cfg);
}

void a_wait_that_is_cancelled_takes_nothing(void**) {
  o.connect();
  fake::state.cq_events = 1;
  fake::state.events.push_back({RDMA_CM_EVENT_DISCONNECTED, ""});
  assert_int_equal(cancelled([] { return rpma_cq_wait(o.cq); }), 1);
  assert_int_equal(cancelled(next_event), 1);
  assert_int_equal(cancelled(next_request), 1);
  assert_int_equal(fake::state.cq_events, 1);
  assert_int_equal(fake::state.events.size(), 1);
  assert_int_equal(rpma_cq_wait(o.cq), 0);
  assert_int_equal(next_event(), 0);
}

void a_completion_event_that_was_taken_is_had(void**) {
  o.connect();
  fake::state.cq_events = 1;
  fake::state.calls.clear();
  fake::state.cancelled_with_event = true;
  assert_int_equal(cancelled([] { return rpma_cq_wait(o.cq); }), 0);
  // Otherwise no thread would learn of the next completion.
  assert_string_equal(fake::state.calls.back().c_str(), "ibv_req_notify_cq");
}

void a_shared_completion_event_that_was_taken_is_had(void**) {
  connect_with_shared_channel();
  fake::state.cq_events = 1;
  fake::state.calls.clear();
  fake::state.cancelled_with_event = true;
  assert_int_equal(cancelled(wait_on_connection), 0);
  assert_string_equal(fake::state.calls.back().c_str(), "ibv_req_notify_cq");
}

void cancel_here(rpma_log_level, const char*, int, const char*, const char*, ...) {
  pthread_testcancel();
}

void a_connection_event_that_was_taken_is_had(void**) {
  o.connect();
  rpma_log_set_function(cancel_here);
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_NOTICE);
  fake::state.events.push_back({RDMA_CM_EVENT_DISCONNECTED, ""});
  fake::state.cancelled_with_event = true;
  assert_int_equal(cancelled(next_event), 0);
}

void a_request_that_was_taken_is_had(void**) {
  fake::state.events.push_back({RDMA_CM_EVENT_CONNECT_REQUEST, "please"});
  fake::state.cancelled_with_event = true;
  assert_int_equal(cancelled(next_request), 0);
  assert_non_null(o.req);
  assert_int_equal(rpma_conn_req_delete(&o.req), 0);
  assert_int_equal(fake::state.rejected, 1);
  assert_int_equal(fake::live(), live_before);
}

void what_waits_for_no_event_is_done_whole(void**) {
  rpma_ep* ep = nullptr;
  rpma_srq* srq = nullptr;
  rpma_peer* peer = nullptr;
  rpma_mr_local* mr = nullptr;
  const auto whole = [](std::function<int()> function) { assert_int_equal(cancelled(std::move(function)), 0); };
  whole([&] { return rpma_peer_new(fake::context(), &peer); });
  whole([&] { return rpma_mr_reg(peer, o.memory, 8, RPMA_MR_USAGE_SEND, &mr); });
  whole([&] { return rpma_srq_new(peer, nullptr, &srq); });
  whole([&] { return rpma_ep_listen(peer, "127.0.0.1", "1", &ep); });
  whole([] { return rpma_conn_req_new(o.peer, "127.0.0.1", "1", nullptr, &o.req); });
  whole([] { return rpma_conn_req_connect(&o.req, nullptr, &o.conn); });
  whole([] { return rpma_conn_disconnect(o.conn); });
  whole([] { return rpma_conn_delete(&o.conn); });
  whole([] { return rpma_conn_req_new(o.peer, "127.0.0.1", "1", nullptr, &o.req); });
  whole([] { return rpma_conn_req_delete(&o.req); });
  whole([&] { return rpma_ep_shutdown(&ep); });
  whole([&] { return rpma_srq_delete(&srq); });
  whole([&] { return rpma_mr_dereg(&mr); });
  whole([&] { return rpma_peer_delete(&peer); });
  assert_int_equal(fake::live(), live_before);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_wait_that_is_cancelled_takes_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_completion_event_that_was_taken_is_had, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_shared_completion_event_that_was_taken_is_had, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_connection_event_that_was_taken_is_had, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_request_that_was_taken_is_had, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_waits_for_no_event_is_done_whole, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

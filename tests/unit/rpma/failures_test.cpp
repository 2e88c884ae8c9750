// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Each call of librpma to libibverbs, librdmacm and libdapple fails once, and each allocation: the program gets the
// documented error from the function in which it failed, and nothing is left after it has deleted its objects.
#include <cerrno>
#include <cstring>
#include <set>

#include "tests/unit/rpma/objects.hpp"

namespace {

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;

// The calls that must have failed by the end.
const char* const kCalls[] = {
#define BY_HAND(name) #name,
#define NEVER(name)
#include "tests/unit/rpma/calls.def"
#undef BY_HAND
#undef NEVER
    "new", "dappledv_query_device"};

std::set<std::string> failed;

Objects o;
rpma_cq* found;
bool is_rcq;
rpma_conn_event event;
ibv_wc wc;
ibv_context* device;
int odp;
bool has;
const char kBytes[8] = {};

void give_event(rdma_cm_event_type type) {
  fake::state.events.push_back({type, "hello"});
}

// A step is a function of librpma; a scenario is a list of steps. It continues after a failure as far as possible.
using Step = int (*)();

int shared_cfg() {
  if (const int error = rpma_conn_cfg_new(&o.cfg)) return error;
  rpma_conn_cfg_set_rcq_size(o.cfg, 4);
  return rpma_conn_cfg_set_compl_channel(o.cfg, true);
}
int srq_cfg() {
  if (const int error = rpma_conn_cfg_new(&o.cfg)) return error;
  return rpma_conn_cfg_set_srq(o.cfg, o.srq);
}
int next_request() {
  fake::state.events.clear();
  give_event(RDMA_CM_EVENT_CONNECT_REQUEST);
  return rpma_ep_next_conn_req(o.ep, o.cfg, &o.req);
}
int remote_region() {
  uint8_t bytes[22];
  if (const int error = rpma_mr_get_descriptor(o.mr, bytes)) return error;
  return rpma_mr_remote_from_descriptor(bytes, sizeof bytes, &o.remote);
}
int established() {
  fake::state.events.clear();
  give_event(RDMA_CM_EVENT_ESTABLISHED);
  return rpma_conn_next_event(o.conn, &event);
}
int cq_of_conn() {
  return rpma_conn_get_cq(o.conn, &o.cq);
}
int cq_wait() {
  fake::state.cq_events = 1;
  return rpma_cq_wait(o.cq);
}
int conn_wait() {
  fake::state.cq_events = 1;
  found = nullptr;
  is_rcq = false;
  const int error = rpma_conn_wait(o.conn, 0, &found, &is_rcq);
  if (error && (found || is_rcq)) fake::state.wrong = "a wait that failed has stored a CQ";
  return error;
}
int get_wc() {
  fake::state.completions.resize(1);
  return rpma_cq_get_wc(o.cq, 1, &wc, nullptr);
}
int flush() {
  return rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr);
}

const Step kDevice[] = {
    [] { return rpma_utils_get_ibv_context("here", RPMA_UTIL_IBV_CONTEXT_LOCAL, &device); },
    [] { return rpma_utils_get_ibv_context("there", RPMA_UTIL_IBV_CONTEXT_REMOTE, &device); },
    [] { return rpma_utils_ibv_context_is_odp_capable(fake::context(), &odp); },
    [] { return rpma_peer_cfg_new(&o.peer_cfg); },
    [] { return rpma_peer_cfg_delete(&o.peer_cfg); },
    [] { return rpma_peer_cfg_from_descriptor("\1", 1, &o.peer_cfg); },
    [] { return rpma_peer_new(fake::context(), &o.peer); },
    [] { return rpma_mr_reg(o.peer, o.memory, 64, 0xff, &o.mr); },
    [] { return rpma_mr_advise(o.mr, 0, 8, 0, 0); },
    remote_region,
    [] { return rpma_mr_remote_delete(&o.remote); },
    [] { return rpma_mr_dereg(&o.mr); },
    [] { return rpma_peer_delete(&o.peer); },
};

const Step kActive[] = {
    [] { return rpma_peer_new(fake::context(), &o.peer); },
    [] { return rpma_peer_has_feature(o.peer, RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, &has, nullptr); },
    [] { return rpma_mr_reg(o.peer, o.memory, 64, 0xff, &o.mr); },
    remote_region,
    shared_cfg,
    [] { return rpma_conn_req_new(o.peer, "there", "1", o.cfg, &o.req); },
    [] { return rpma_conn_req_recv(o.req, o.mr, 0, 8, nullptr); },
    [] { return rpma_conn_req_connect(&o.req, nullptr, &o.conn); },
    established,
    cq_of_conn,
    [] { return rpma_read(o.conn, o.mr, 0, o.remote, 0, 8, kOn, nullptr); },
    [] { return rpma_atomic_write(o.conn, o.remote, 0, kBytes, kOn, nullptr); },
    flush,
    [] { return rpma_recv(o.conn, o.mr, 0, 8, nullptr); },
    conn_wait,
    get_wc,
    [] { return rpma_conn_disconnect(o.conn); },
    [] { return rpma_conn_delete(&o.conn); },
    [] { return rpma_conn_req_new(o.peer, "there", "1", nullptr, &o.req); },
    [] { return rpma_conn_req_delete(&o.req); },
    [] { return rpma_mr_dereg(&o.mr); },
    [] { return rpma_peer_delete(&o.peer); },
};

const Step kPassive[] = {
    [] { return rpma_peer_new(fake::context(), &o.peer); },
    [] { return rpma_mr_reg(o.peer, o.memory, 64, 0xff, &o.mr); },
    [] { return rpma_srq_cfg_new(&o.srq_cfg); },
    [] { return rpma_srq_new(o.peer, o.srq_cfg, &o.srq); },
    [] { return rpma_srq_recv(o.srq, o.mr, 0, 8, nullptr); },
    srq_cfg,
    [] { return rpma_ep_listen(o.peer, "here", "1", &o.ep); },
    next_request,
    [] { return rpma_conn_req_connect(&o.req, nullptr, &o.conn); },
    established,
    cq_of_conn,
    cq_wait,
    [] { return rpma_conn_delete(&o.conn); },
    next_request,
    [] { return rpma_conn_req_delete(&o.req); },
    [] { return rpma_ep_shutdown(&o.ep); },
    [] { return rpma_srq_delete(&o.srq); },
    [] { return rpma_mr_dereg(&o.mr); },
    [] { return rpma_peer_delete(&o.peer); },
};

// The result of a function in which a call failed with EIO; only for calls of this name.
struct Expected {
  const char* call;
  int result;
};
constexpr Expected kExpected[] = {
    {"new", RPMA_E_NOMEM},
    {"ibv_get_cq_event", RPMA_E_NO_COMPLETION},
};

int expected_of(const std::string& call) {
  for (const Expected& each : kExpected)
    if (call == each.call) return each.result;
  return RPMA_E_PROVIDER;
}

// A failure after which another way is tried: a queue pair without native operations, a region without their access, a
// device without known attributes.
bool may_be_overcome(const std::string& call) {
  return call == "rdma_create_qp_ex" || call == "ibv_reg_mr" || call == "ibv_query_device_ex";
}

// An id that only looked for a device or for an address, and that the kernel keeps: nobody could do anything about it.
bool leaves_an_id(const std::string& call, int result) {
  return call == "rdma_destroy_id" && result == 0 && fake::live() == 1 && fake::state.live[fake::kCmId] == 1;
}

// Runs it to the first failure, which it returns; then everything that is left is deleted, without failures.
template <size_t kCount>
int play(const Step (&steps)[kCount], int fails_at) {
  int result = 0;
  fake::state.fails_at = fails_at;
  fake::state.error = EIO;
  for (const Step step : steps) {
    result = step();
    if (result) break;
  }
  fake::state.fails_at = 0;
  o.free();
  return result;
}

template <size_t kCount>
void fail_each_call(const Step (&steps)[kCount], void (*prepare)()) {
  int failures = 0;
  fake::reset();
  prepare();
  assert_int_equal(play(steps, 0), 0);
  const size_t calls = fake::state.calls.size();
  assert_true(calls > 15);
  for (size_t i = 1; i <= calls; ++i) {
    fake::reset();
    prepare();
    const int result = play(steps, static_cast<int>(i));
    assert_true(fake::state.calls.size() >= i);
    const std::string call = fake::state.calls[i - 1];
    failed.insert(call);
    const bool overcome = result == 0 && (may_be_overcome(call) || i > calls);
    const bool good = (overcome || result == expected_of(call)) && fake::live() == 0 && fake::state.wrong.empty();
    if (good || leaves_an_id(call, result)) continue;
    ++failures;
    print_error("call %zu, %s: %s, %d objects left. %s\n", i, call.c_str(), rpma_err_2str(result), fake::live(),
                fake::state.wrong.c_str());
    for (int kind = 0; kind < fake::kKinds; ++kind)
      if (fake::state.live[kind]) print_error("    kind %d: %d\n", kind, fake::state.live[kind]);
  }
  assert_int_equal(failures, 0);
}

void nothing() {}

void looking_at_a_device(void**) {
  fail_each_call(kDevice, nothing);
}
void connecting(void**) {
  fail_each_call(kActive, nothing);
}
void connecting_with_native_operations(void**) {
  fail_each_call(kActive, fake::make_native);
}
void accepting(void**) {
  fail_each_call(kPassive, nothing);
}
void accepting_with_native_operations(void**) {
  fail_each_call(kPassive, fake::make_native);
}

void every_call_has_failed(void**) {
  for (const char* call : kCalls) {
    if (!failed.contains(call)) print_error("%s never failed\n", call);
    assert_true(failed.contains(call));
  }
}

int be_silent(void**) {
  return rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(looking_at_a_device),
      cmocka_unit_test(connecting),
      cmocka_unit_test(connecting_with_native_operations),
      cmocka_unit_test(accepting),
      cmocka_unit_test(accepting_with_native_operations),
      cmocka_unit_test(every_call_has_failed),
  };
  return cmocka_run_group_tests(tests, be_silent, nullptr);
}

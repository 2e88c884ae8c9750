// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Frees objects that another object needs: the call must return the exact DAT_INVALID_STATE, every query must have the
// same result as before, and the object must still work.
#include <pthread.h>

#include "tests/softroce/api/arguments/world.hpp"

using arguments::World;

namespace {

DAT_LMR_TRIPLET segment;
DAT_RMR_CONTEXT window_context;

// ---- Ways to make an object busy that the world does not contain ----

void nothing(World&) {}

void bind_window(World& w) {
  segment = local(&w.f, HALF, 4096);
  assert_ok(dat_rmr_bind(w.good[arguments::kRmr], w.f.lmr, &segment, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
                         w.bind_ep, cookie(1), DAT_COMPLETION_DEFAULT_FLAG, &window_context));
  expect_event(w.full_evd, DAT_RMR_BIND_COMPLETION_EVENT);
}

void lend_async_evd(World& w) {
  DAT_EVD_HANDLE lent = w.f.async;
  DAT_IA_HANDLE borrower;
  assert_ok(dat_ia_open(const_cast<char*>(IA_NAME), 8, &lent, &borrower));
}

// A request with its EP: the one that the RSP reserved.
DAT_EP_HANDLE asker;
DAT_CR_HANDLE held_request;
void ask_for_reserved(World& w) {
  assert_ok(dat_ep_create(w.f.ia, w.f.pz, w.full_evd, w.full_evd, w.full_evd, nullptr, &asker));
  assert_ok(dat_ep_connect(asker, w.f.attr.ia_address_ptr, 7001, WAIT_US, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  held_request = expect_event(w.f.requests, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

struct Waiter {
  pthread_t thread;
  DAT_EVD_HANDLE evd;
  DAT_RETURN status;
} waiter;

void* wait_forever(void* argument) {
  auto* self = static_cast<Waiter*>(argument);
  DAT_EVENT event;
  DAT_COUNT more;
  self->status = dat_evd_wait(self->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
  return nullptr;
}

void wait_on_evd(World& w) {
  DAT_EVENT event;
  waiter.evd = w.good[arguments::kEvd];
  assert_int_equal(pthread_create(&waiter.thread, nullptr, wait_forever, &waiter), 0);
  while (DAT_GET_TYPE(dat_evd_dequeue(waiter.evd, &event)) != DAT_INVALID_STATE) usleep(100);
}

// ---- Checks that an object still works ----

void send_one(World& w) {
  DAT_LMR_TRIPLET to = local(&w.f, HALF, 100);
  DAT_LMR_TRIPLET from = local(&w.f, 0, 100);
  assert_ok(dat_ep_post_recv(w.f.passive.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(w.f.active.ep, 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(w.f.active.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  expect_dto(w.f.passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
}

void disconnect(World& w) {
  assert_ok(dat_ep_disconnect(w.f.active.ep, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(w.f.active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(w.f.passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void register_in_zone(World& w) {
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  region.for_va = w.f.memory;
  assert_ok(dat_lmr_create(w.f.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, w.f.pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                           &lmr, nullptr, nullptr, nullptr, nullptr));
  assert_ok(dat_lmr_free(lmr));
  send_one(w);
}

void request_arrives(World& w) {
  end from{};
  from.ep = w.good[arguments::kEp];
  begin_connect(&w.f, &from, nullptr, 0);
  take_request(&w.f);
}

void no_async_event(World& w) {
  DAT_EVENT event;
  assert_error(dat_evd_dequeue(w.f.async, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}

void cno_is_triggered(World& w) {
  DAT_EVENT event{};
  DAT_EVD_HANDLE triggered = DAT_HANDLE_NULL;
  while (DAT_GET_TYPE(dat_cno_trigger(w.used_cno, &triggered)) == DAT_SUCCESS) {
  }
  while (DAT_GET_TYPE(dat_evd_dequeue(w.full_evd, &event)) == DAT_SUCCESS) {
  }
  event.event_number = DAT_SOFTWARE_EVENT;
  assert_ok(dat_evd_post_se(w.full_evd, &event));
  assert_ok(dat_cno_wait(w.used_cno, WAIT_US, &triggered));
  assert_ptr_equal(triggered, w.full_evd);
}

void window_is_written(World& w) {
  DAT_LMR_TRIPLET from = local(&w.f, 0, 100);
  DAT_RMR_TRIPLET to = remote(&w.f, HALF, 100);
  to.rmr_context = window_context;
  assert_ok(dat_ep_post_rdma_write(w.f.active.ep, 1, &from, cookie(3), &to, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(w.f.active.request, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
}

void srq_takes_receives(World& w) {
  DAT_LMR_TRIPLET to = local(&w.f, 0, 100);
  assert_ok(dat_srq_post_recv(w.used_srq, 1, &to, cookie(4)));
}

void reserved_ep_is_connected(World& w) {
  if (!held_request) ask_for_reserved(w);
  assert_ok(dat_cr_accept(held_request, DAT_HANDLE_NULL, 0, nullptr));
  expect_event(w.full_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(w.full_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_int_equal(state_of(w.reserved_ep), DAT_EP_STATE_CONNECTED);
}

void waiter_gets_its_event(World&) {
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  assert_ok(dat_evd_post_se(waiter.evd, &event));
  assert_int_equal(pthread_join(waiter.thread, nullptr), 0);
  assert_ok(waiter.status);
}

DAT_RETURN close_gracefully(DAT_HANDLE ia) {
  return dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
}

// handle gives the object's place in the world.
struct Row {
  const char* what;
  DAT_RETURN (*free)(DAT_HANDLE);
  DAT_HANDLE (*handle)(const World&);
  DAT_RETURN_SUBTYPE subtype;
  void (*make_busy)(World&);
  void (*use)(World&);
};

#define OF(member) [](const World& w) -> DAT_HANDLE { return w.member; }
const Row kRows[] = {
    {"PZ of LMRs, RMRs, EPs, SRQs", dat_pz_free, OF(f.pz), DAT_INVALID_STATE_PZ_IN_USE, nothing, register_in_zone},
    {"PZ of an EP alone", dat_pz_free, OF(spare_pz), DAT_INVALID_STATE_PZ_IN_USE, nothing, send_one},
    {"EVD of receives", dat_evd_free, OF(f.passive.recv), DAT_INVALID_STATE_EVD_IN_USE, nothing, send_one},
    {"EVD of requests", dat_evd_free, OF(f.active.request), DAT_INVALID_STATE_EVD_IN_USE, nothing, send_one},
    {"EVD of connections", dat_evd_free, OF(f.active.connect), DAT_INVALID_STATE_EVD_IN_USE, nothing, disconnect},
    {"EVD of service points", dat_evd_free, OF(f.requests), DAT_INVALID_STATE_EVD_IN_USE, nothing, request_arrives},
    {"EVD of the IA's errors", dat_evd_free, OF(f.async), DAT_INVALID_STATE_EVD_IN_USE, nothing, no_async_event},
    {"the same, lent", dat_evd_free, OF(f.async), DAT_INVALID_STATE_EVD_IN_USE, lend_async_evd, no_async_event},
    {"EVD with a waiter", dat_evd_free, OF(good[arguments::kEvd]), DAT_INVALID_STATE_EVD_WAITER, wait_on_evd,
     waiter_gets_its_event},
    {"CNO of an EVD", dat_cno_free, OF(used_cno), DAT_INVALID_STATE_CNO_IN_USE, nothing, cno_is_triggered},
    {"LMR under a window", dat_lmr_free, OF(f.lmr), DAT_INVALID_STATE_LMR_IN_USE, bind_window, window_is_written},
    {"SRQ of an EP", dat_srq_free, OF(used_srq), DAT_INVALID_STATE_SRQ_IN_USE, nothing, srq_takes_receives},
    {"EP reserved", dat_ep_free, OF(reserved_ep), DAT_INVALID_STATE_EP_RESERVED, nothing, reserved_ep_is_connected},
    {"EP of a request", dat_ep_free, OF(reserved_ep), DAT_INVALID_STATE_EP_PASSCONNPENDING, ask_for_reserved,
     reserved_ep_is_connected},
    {"EP connected, reset", dat_ep_reset, OF(f.active.ep), DAT_INVALID_STATE_EP_CONNECTED, nothing, send_one},
    {"IA with objects", close_gracefully, OF(f.ia), DAT_INVALID_STATE_IA_IN_USE, nothing, register_in_zone},
};

void free__in_the_wrong_order(void** state) {
  static size_t next = 0;
  const Row& row = kRows[next++];
  auto& w = *static_cast<World*>(*state);
  if (row.make_busy == bind_window && on_iwarp()) {
    // iWARP has no window that could use it.
    assert_error(dat_rmr_create(w.f.pz, &w.good[arguments::kRmr]), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
    assert_ok(dat_lmr_free(w.f.lmr));
    return;
  }
  held_request = DAT_HANDLE_NULL;
  row.make_busy(w);
  const uint64_t before = fingerprint(w);
  for (int time = 0; time < 2; ++time) {
    check_status(row.free(row.handle(w)), static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_STATE | row.subtype,
                 row.what, __FILE__, __LINE__);
  }
  assert_int_equal(fingerprint(w), before);
  row.use(w);
}

}  // namespace

int main() {
  constexpr size_t kTests = sizeof kRows / sizeof *kRows;
  CMUnitTest tests[kTests];
  for (size_t i = 0; i < kTests; ++i) {
    tests[i] = {kRows[i].what, free__in_the_wrong_order, arguments::set_up_world, arguments::tear_down_world, nullptr};
  }
  return RUN_TESTS(tests);
}

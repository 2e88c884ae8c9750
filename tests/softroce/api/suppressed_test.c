/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Requests whose success makes no event need no thread that looks at their EVD, and no room in it. Run twice: as the
 * device is, and with DAPPLE_COHERENCE=cpu.
 */
#include <string.h>

#include "tests/softroce/api/api.h"

#define SUPPRESS DAT_COMPLETION_SUPPRESS_FLAG

static void write_suppressed(const struct fixture* f, const struct end* end, int count) {
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  for (int i = 0; i < count; ++i) {
    assert_posted(dat_ep_post_rdma_write(end->ep, 1, &source, cookie(9), &there, SUPPRESS));
  }
}

static void post__suppressed_ones_never_stall(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  /* All requests are suppressed, and no thread looks at the EVD. */
  write_suppressed(f, &f->active, 2000);
  expect_nothing(f->active.request);
  /* The last of them have completed when a later request with an event has. */
  fill(f->memory, 100, 7);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_SUPPRESS_FLAG));
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(2), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, 2);
  sync_for_write(f, HALF, 100);
  assert_true(is_filled(f->memory + HALF, 100, 7));
  expect_nothing(f->active.request);
}

static void post__a_suppressed_receive(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  DAT_LMR_TRIPLET sink = local(f, HALF, 100);
  for (uint64_t i = 0; i < 50; ++i) {
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), DAT_COMPLETION_SUPPRESS_FLAG));
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(2 + i), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(1), DAT_COMPLETION_SUPPRESS_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->passive.recv, 2 + i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    expect_dto(f->active.request, i, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  }
  expect_nothing(f->passive.recv);
}

/* More than a receive queue holds, one after the other; no thread looks at the EVD. */
static void post__suppressed_receives_never_stall(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  DAT_LMR_TRIPLET sink = local(f, HALF, 100);
  for (uint64_t i = 0; i < 100; ++i) {
    assert_posted(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), SUPPRESS));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->active.request, i, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  }
  expect_nothing(f->passive.recv);
}

enum { kMany = 40, kEnds = 12, kFew = 2 };

static const DAT_EP_ATTR kDeep = {.service_type = DAT_SERVICE_TYPE_RC,
                                  .max_recv_dtos = 8,
                                  .max_request_dtos = 64,
                                  .max_recv_iov = 1,
                                  .max_request_iov = 1,
                                  .max_rdma_read_in = 4,
                                  .max_rdma_read_out = 4};

/*
 * An endpoint whose transfers complete on this EVD, connected to one that is not used further. Nothing is received,
 * because libsiw allows a process 144 queues.
 */
static struct end connect_reporting_to(struct fixture* f, DAT_EVD_HANDLE dto) {
  struct end end = {.recv = dto, .request = dto};
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end.connect));
  assert_ok(dat_ep_create(f->ia, f->pz, end.recv, end.request, end.connect, &kDeep, &end.ep));
  make_end(f, &f->passive, NULL);
  f->active = end;
  connect_ends(f);
  return end;
}

static void expect_the_one_event(const struct fixture* f, const struct end* end, uint64_t number) {
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  assert_posted(dat_ep_post_rdma_write(end->ep, 1, &source, cookie(number), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(end->request, number, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  expect_nothing(f->async);
}

static void post__suppressed_ones_take_no_room_of_the_evd(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE few;
  struct end end;
  assert_ok(dat_evd_create(f->ia, kFew, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &few));
  listen_any(f);
  end = connect_reporting_to(f, few);
  for (uint64_t round = 0; round < 5; ++round) {
    write_suppressed(f, &end, kMany);
    usleep(50000);
    expect_the_one_event(f, &end, round);
  }
}

/* The same when EVDs are made larger and smaller, and when endpoints are freed with posted requests. */
static void post__suppressed_ones_of_many_endpoints_on_one_evd(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE few;
  struct end ends[kEnds];
  assert_ok(dat_evd_create(f->ia, kFew, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &few));
  listen_any(f);
  for (int i = 0; i < kEnds; ++i) ends[i] = connect_reporting_to(f, few);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kEnds; ++i) write_suppressed(f, &ends[i], kMany);
    usleep(100000);
    expect_the_one_event(f, &ends[round], (uint64_t)round);
    if (!on_iwarp()) assert_ok(dat_evd_resize(few, round == 1 ? kFew : 100)); /* siw cannot */
  }
  for (int i = 1; i < kEnds; ++i) {
    write_suppressed(f, &ends[i], kMany - 10);
    assert_ok(dat_ep_free(ends[i].ep));
  }
  for (uint64_t round = 0; round < 20; ++round) {
    write_suppressed(f, &ends[0], kMany);
    expect_the_one_event(f, &ends[0], round);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(post__suppressed_ones_never_stall),
      CONNECTED_TEST(post__a_suppressed_receive),
      CONNECTED_TEST(post__suppressed_receives_never_stall),
      IA_TEST(post__suppressed_ones_take_no_room_of_the_evd),
      IA_TEST(post__suppressed_ones_of_many_endpoints_on_one_evd),
  };
  return RUN_TESTS(tests);
}

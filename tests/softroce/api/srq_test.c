/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Shared receive queues. Run twice: as the device is, and as if it were not cache-coherent. */
#include <string.h>

#include "tests/softroce/api/api.h"

enum { kPairs = 3, kDepth = 16 };

struct shared {
  DAT_SRQ_HANDLE srq;
  DAT_EVD_HANDLE recv; /* of all passive ends */
  struct end active[kPairs];
  struct end passive[kPairs];
};

static DAT_SRQ_HANDLE make_srq(struct fixture* f, DAT_COUNT depth, DAT_COUNT low_watermark) {
  DAT_SRQ_ATTR attr;
  DAT_SRQ_HANDLE srq;
  attr.max_recv_dtos = depth;
  attr.max_recv_iov = 2;
  attr.low_watermark = low_watermark;
  assert_ok(dat_srq_create(f->ia, f->pz, &attr, &srq));
  return srq;
}

static DAT_SRQ_PARAM query(DAT_SRQ_HANDLE srq) {
  DAT_SRQ_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
  return param;
}

static DAT_RETURN post(struct fixture* f, DAT_SRQ_HANDLE srq, uint64_t number) {
  DAT_LMR_TRIPLET to = local(f, HALF + number % 1000 * 64, 64);
  return dat_srq_post_recv(srq, 1, &to, cookie(number));
}

static void send_from(struct fixture* f, const struct end* end, uint64_t number) {
  DAT_LMR_TRIPLET from = local(f, number % 1000 * 64, 64);
  fill(f->memory + number % 1000 * 64, 64, (unsigned int)number);
  assert_ok(dat_ep_post_send(end->ep, 1, &from, cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(end->request, number, DAT_DTO_SEND, DAT_DTO_SUCCESS);
}

static void connect_pairs(struct fixture* f, struct shared* s) {
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &s->recv));
  listen_any(f);
  for (int i = 0; i < kPairs; ++i) {
    struct end* end = &s->passive[i];
    make_end(f, &s->active[i], NULL);
    end->recv = s->recv;
    assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->request));
    assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end->connect));
    assert_ok(dat_ep_create_with_srq(f->ia, f->pz, end->recv, end->request, end->connect, s->srq, NULL, &end->ep));
    begin_connect(f, &s->active[i], NULL, 0);
    assert_ok(dat_cr_accept(take_request(f), end->ep, 0, NULL));
    expect_event(s->active[i].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_event(end->connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  }
}

static void srq__each_completion_names_its_ep(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  uint64_t number = 0;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (int round = 0; round < 40; ++round) {
    uint64_t at = number;
    for (int i = 0; i < 8; ++i) assert_ok(post(f, s.srq, number++));
    for (; at < number; ++at) {
      const struct end* from = &s.active[at * 7 % kPairs];
      DAT_DTO_COMPLETION_EVENT_DATA data;
      memset(f->memory + HALF + at % 1000 * 64, 0, 64);
      send_from(f, from, at);
      data = expect_dto(s.recv, at, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
      assert_ptr_equal(data.ep_handle, s.passive[at * 7 % kPairs].ep);
      assert_int_equal(data.transfered_length, 64);
      assert_true(is_filled(f->memory + HALF + at % 1000 * 64, 64, (unsigned int)at));
    }
  }
}

static void srq_query__counts(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  DAT_SRQ_PARAM param;
  DAT_EP_PARAM ep_param;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (uint64_t i = 0; i < kDepth; ++i) assert_ok(post(f, s.srq, i));
  assert_error_type(post(f, s.srq, 99), DAT_INSUFFICIENT_RESOURCES);
  param = query(s.srq);
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_ptr_equal(param.pz_handle, f->pz);
  assert_int_equal(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
  assert_int_equal(param.max_recv_dtos, kDepth);
  assert_int_equal(param.max_recv_iov, 2);
  assert_int_equal(param.available_dto_count, kDepth);
  assert_int_equal(param.outstanding_dto_count, kDepth);
  for (uint64_t i = 0; i < 5; ++i) send_from(f, &s.active[0], i);
  /* On iWARP a Send completes before the peer has it. */
  for (int i = 0; on_iwarp() && i < 2000 && query(s.srq).available_dto_count > kDepth - 5; ++i) usleep(10000);
  param = query(s.srq);
  assert_int_equal(param.available_dto_count, kDepth - 5);
  assert_int_equal(param.outstanding_dto_count, kDepth);
  for (uint64_t i = 0; i < 5; ++i) expect_dto(s.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  param = query(s.srq);
  assert_int_equal(param.outstanding_dto_count, kDepth - 5);
  assert_ok(dat_ep_query(s.passive[0].ep, DAT_EP_FIELD_ALL, &ep_param));
  assert_ptr_equal(ep_param.srq_handle, s.srq);
}

static void srq_resize__grows_and_refuses(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (uint64_t i = 0; i < kDepth; ++i) assert_ok(post(f, s.srq, i));
  assert_error_type(dat_srq_resize(s.srq, kDepth - 1), DAT_INVALID_STATE);
  assert_error(dat_srq_resize(s.srq, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_srq_resize(s.srq, 0x7fffffff), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_int_equal(query(s.srq).max_recv_dtos, kDepth);
  if (on_iwarp()) { /* software iWARP cannot; the queue stays as it is */
    assert_error(dat_srq_resize(s.srq, 4 * kDepth), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
    assert_int_equal(query(s.srq).max_recv_dtos, kDepth);
    for (uint64_t i = 0; i < kDepth; ++i) {
      send_from(f, &s.active[i % kPairs], i);
      expect_dto(s.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    }
    return;
  }
  assert_ok(dat_srq_resize(s.srq, 4 * kDepth));
  assert_int_equal(query(s.srq).max_recv_dtos, 4 * kDepth);
  for (uint64_t i = kDepth; i < 4 * kDepth; ++i) assert_ok(post(f, s.srq, i));
  for (uint64_t i = 0; i < 4 * kDepth; ++i) {
    send_from(f, &s.active[i % kPairs], i);
    expect_dto(s.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
}

static void expect_watermark(struct fixture* f, DAT_SRQ_HANDLE srq) {
  DAT_EVENT event;
  DAT_COUNT more;
  assert_ok(dat_evd_wait(f->async, WAIT_US, 1, &event, &more));
  assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, srq);
  assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void srq_set_lw__tells_once_per_setting(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (uint64_t i = 0; i < 8; ++i) assert_ok(post(f, s.srq, i));
  assert_error(dat_srq_set_lw(s.srq, kDepth + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_srq_set_lw(s.srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(dat_srq_set_lw(s.srq, 6));
  assert_int_equal(query(s.srq).low_watermark, 6);
  for (uint64_t i = 0; i < 2; ++i) send_from(f, &s.active[0], i);
  expect_nothing(f->async);
  send_from(f, &s.active[0], 2);
  expect_watermark(f, s.srq);
  send_from(f, &s.active[0], 3);
  expect_nothing(f->async);
  assert_ok(dat_srq_set_lw(s.srq, 6)); /* already below the watermark: at once */
  expect_watermark(f, s.srq);
  assert_error_type(dat_srq_resize(s.srq, 5), DAT_INVALID_STATE);
}

static void srq_free__in_the_wrong_order(void** state) {
  struct fixture* f = *state;
  DAT_SRQ_HANDLE srq = make_srq(f, kDepth, 0);
  DAT_EVD_HANDLE recv;
  DAT_EP_HANDLE ep;
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  DAT_COUNT buffers = 0;
  DAT_COUNT span = 0;
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &recv));
  assert_ok(dat_ep_create_with_srq(f->ia, f->pz, recv, DAT_HANDLE_NULL, DAT_HANDLE_NULL, srq, NULL, &ep));
  assert_error(dat_srq_free(srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
  assert_error_type(dat_ep_post_recv(ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE);
  assert_ok(dat_ep_recv_query(ep, &buffers, &span));
  assert_int_equal(buffers, DAT_VALUE_UNKNOWN);
  assert_ok(dat_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
  assert_error_type(dat_ep_set_watermark(ep, 3, 5), DAT_MODEL_NOT_SUPPORTED);
  assert_error(dat_ep_set_watermark(ep, -5, 5), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(dat_ep_free(ep));
  assert_ok(post(f, srq, 1));
  assert_ok(dat_srq_free(srq));
  assert_error_type(dat_srq_free(srq), DAT_INVALID_HANDLE);
}

static void srq__outlives_its_eps(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (uint64_t i = 0; i < kDepth; ++i) assert_ok(post(f, s.srq, i));
  for (uint64_t i = 0; i < 4; ++i) send_from(f, &s.active[0], i);
  /* With received messages that nobody has dequeued. */
  assert_ok(dat_ep_free(s.passive[0].ep));
  expect_nothing(s.recv);
  assert_int_equal(query(s.srq).outstanding_dto_count, kDepth - 4);
  for (uint64_t i = 0; i < 4; ++i) assert_ok(post(f, s.srq, 100 + i));
  for (uint64_t i = 4; i < kDepth; ++i) {
    send_from(f, &s.active[1], i);
    expect_dto(s.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
  for (uint64_t i = 0; i < 4; ++i) {
    send_from(f, &s.active[2], i);
    expect_dto(s.recv, 100 + i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
}

static void srq__an_ep_that_ends_says_so(void** state) {
  struct fixture* f = *state;
  static struct shared s;
  DAT_EVENT event;
  s.srq = make_srq(f, kDepth, 0);
  connect_pairs(f, &s);
  for (uint64_t i = 0; i < 4; ++i) assert_ok(post(f, s.srq, i));
  assert_ok(dat_ep_disconnect(s.active[0].ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(s.passive[0].connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  event = expect_event(f->async, DAT_ASYNC_ERROR_EP_BROKEN);
  assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, s.passive[0].ep);
  expect_nothing(f->async);
  /* Receives on the queue are not flushed, and serve the same EP again. */
  expect_nothing(s.recv);
  expect_event(s.active[0].connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_ok(dat_ep_reset(s.active[0].ep));
  assert_ok(dat_ep_reset(s.passive[0].ep));
  begin_connect(f, &s.active[0], NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), s.passive[0].ep, 0, NULL));
  expect_event(s.active[0].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(s.passive[0].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  for (uint64_t i = 0; i < 4; ++i) {
    send_from(f, &s.active[0], i);
    assert_ptr_equal(expect_dto(s.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).ep_handle, s.passive[0].ep);
  }
}

/* An EP that is made without a PZ gets its queue pair, and with it the shared queue, later; then its limits change. */
static void srq__an_ep_configured_step_by_step(void** state) {
  struct fixture* f = *state;
  struct end active;
  struct end passive;
  DAT_SRQ_HANDLE srq = make_srq(f, kDepth, 0);
  DAT_PZ_HANDLE other_pz;
  DAT_EP_PARAM param;
  make_end(f, &active, NULL);
  make_end(f, &passive, NULL);
  assert_ok(dat_ep_free(passive.ep));
  assert_ok(dat_ep_create_with_srq(f->ia, DAT_HANDLE_NULL, passive.recv, DAT_HANDLE_NULL, DAT_HANDLE_NULL, srq, NULL,
                                   &passive.ep));
  assert_int_equal(state_of(passive.ep), DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
  assert_ok(dat_pz_create(f->ia, &other_pz));
  memset(&param, 0, sizeof param);
  param.pz_handle = other_pz;
  assert_error(dat_ep_modify(passive.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_ep_modify(passive.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  param.pz_handle = f->pz;
  param.request_evd_handle = passive.request;
  param.connect_evd_handle = passive.connect;
  assert_ok(dat_ep_modify(
      passive.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
  assert_int_equal(state_of(passive.ep), DAT_EP_STATE_UNCONNECTED);
  param.ep_attr.max_request_dtos = 5;
  assert_ok(dat_ep_modify(passive.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
  listen_any(f);
  for (uint64_t i = 0; i < 3; ++i) assert_ok(post(f, srq, i));
  begin_connect(f, &active, NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), passive.ep, 0, NULL));
  expect_event(active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  for (uint64_t i = 0; i < 3; ++i) {
    send_from(f, &active, i);
    assert_ptr_equal(expect_dto(passive.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).ep_handle, passive.ep);
  }
  assert_ok(dat_ep_free(passive.ep));
  assert_ok(dat_srq_free(srq));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(srq__each_completion_names_its_ep), IA_TEST(srq_query__counts),
      IA_TEST(srq_resize__grows_and_refuses),     IA_TEST(srq_set_lw__tells_once_per_setting),
      IA_TEST(srq_free__in_the_wrong_order),      IA_TEST(srq__outlives_its_eps),
      IA_TEST(srq__an_ep_that_ends_says_so),      IA_TEST(srq__an_ep_configured_step_by_step),
  };
  return RUN_TESTS(tests);
}

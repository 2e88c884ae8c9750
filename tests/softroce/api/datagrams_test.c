/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Datagram endpoints: their datagrams, and their life. */
#include "tests/softroce/api/datagrams.h"

#include <string.h>
#include <sys/socket.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

enum { kMtu = 1024 }; /* of the guest's RoCE port */

/* ---- Datagrams ---- */

static void send_ud__arrives_behind_a_routing_header(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  static const size_t sizes[] = {0, 1, 7, 64, 65, 256, kMtu - 1, kMtu};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_LMR_TRIPLET from = local(f, 0, sizes[i]);
    DAT_LMR_TRIPLET into = local(f, HALF, GRH + sizes[i]);
    fill(f->memory, sizes[i], (unsigned int)i);
    memset(f->memory + HALF, 0xcc, GRH + kMtu + 1);
    assert_ok(dat_ib_post_recv_ud(f->passive.ep, 1, &into, cookie(100 + i), DEFAULT));
    assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, i));
    assert_int_equal(expect_ud_dto(f->active.request, i, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS).transfered_length,
                     sizes[i]);
    assert_int_equal(expect_ud_dto(f->passive.recv, 100 + i, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS).transfered_length,
                     GRH + sizes[i]);
    assert_true(is_filled(f->memory + HALF + GRH, sizes[i], (unsigned int)i));
    assert_int_equal(f->memory[HALF + GRH + sizes[i]], 0xcc);
  }
  /* The other way, to the address that the passive end got when it accepted. */
  {
    DAT_LMR_TRIPLET from = local(f, 0, 100);
    DAT_LMR_TRIPLET into = local(f, HALF, 200);
    fill(f->memory, 100, 99);
    assert_ok(dat_ep_post_recv(f->active.ep, 1, &into, cookie(1), DEFAULT));
    assert_ok(send_ud(f->passive.ep, &from, &pair.to_active, 2));
    expect_ud_dto(f->active.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
    assert_true(is_filled(f->memory + HALF + GRH, 100, 99));
  }
}

static void send_ud__gathers_its_segments(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_LMR_TRIPLET from[] = {local(f, 0, 100), local(f, 100, 1), local(f, 101, 0), local(f, 101, 300)};
  DAT_LMR_TRIPLET into[] = {local(f, HALF + 4096, GRH), local(f, HALF, 1000)};
  fill(f->memory, 401, 5);
  assert_ok(dat_ep_post_recv(f->passive.ep, 2, into, cookie(1), DEFAULT));
  assert_ok(dat_ib_post_send_ud(f->active.ep, 4, from, &pair.to_passive, cookie(2), DEFAULT));
  expect_ud_dto(f->passive.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF, 401, 5));
}

static void send_ud__suppressed_ones_make_no_event(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  for (int i = 0; i < 100; ++i) {
    assert_posted(dat_ib_post_send_ud(f->active.ep, 1, &from, &pair.to_passive, cookie(1),
                                      DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG));
  }
  assert_posted(send_ud(f->active.ep, &from, &pair.to_passive, 2));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
  expect_nothing(f->active.request);
}

static void send_ud__takes_a_receive_of_a_shared_queue(void** state) {
  struct fixture* f = *state;
  const DAT_EP_ATTR attr = ud_attributes();
  const DAT_SRQ_ATTR wanted = {.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  DAT_LMR_TRIPLET into = local(f, HALF, 100);
  struct end shared = f->passive;
  DAT_SRQ_HANDLE srq;
  struct ud_pair pair;
  assert_ok(dat_srq_create(f->ia, f->pz, (DAT_SRQ_ATTR*)(uintptr_t)&wanted, &srq));
  assert_ok(dat_ep_create_with_srq(f->ia, f->pz, shared.recv, shared.request, shared.connect, srq, &attr, &shared.ep));
  pair = resolve_ud(f, &f->active, &shared);
  assert_ok(dat_srq_post_recv(srq, 1, &into, cookie(8)));
  assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, 2));
  assert_ptr_equal(expect_ud_dto(shared.recv, 8, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS).ep_handle, shared.ep);
}

/* ---- Misuse ---- */

static void endpoint__refuses_what_needs_a_connection(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET here = local(f, 0, 8);
  DAT_RMR_TRIPLET there = remote(f, HALF, 8);
  for (int resolved = 0; resolved < 2; ++resolved) {
    DAT_EP_HANDLE ep = f->active.ep;
#define REFUSED(call) assert_error(call, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP)
    REFUSED(dat_ep_post_send(ep, 1, &here, cookie(1), DEFAULT));
    REFUSED(dat_ep_post_rdma_write(ep, 1, &here, cookie(1), &there, DEFAULT));
    REFUSED(dat_ep_post_rdma_read(ep, 1, &here, cookie(1), &there, DEFAULT));
    REFUSED(dat_ib_post_rdma_write_immed(ep, 1, &here, cookie(1), &there, 1, DEFAULT));
    REFUSED(dat_ib_post_fetch_and_add(ep, 1, &here, cookie(1), &there, DEFAULT));
    REFUSED(dat_ib_post_cmp_and_swap(ep, 1, 2, &here, cookie(1), &there, DEFAULT));
    REFUSED(dat_ep_post_send_with_invalidate(ep, 1, &here, cookie(1), DEFAULT, DAT_FALSE, 1));
#undef REFUSED
    if (!resolved) (void)resolve_ud(f, &f->active, &f->passive);
  }
  expect_nothing(f->active.request);
  assert_error_type(dat_ep_dup_connect(f->active.ep, f->passive.ep, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT),
                    DAT_INVALID_STATE);
}

static void send_ud__bad_arguments(void** state) {
  struct fixture* f = *state;
  const DAT_EP_ATTR attr = ud_attributes();
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  DAT_LMR_TRIPLET many[5] = {from, from, from, from, from};
  DAT_LMR_TRIPLET two_halves[2] = {local(f, 0, kMtu), local(f, 0, 1)};
  DAT_IB_ADDR_HANDLE foreign;
  DAT_IB_ADDR_HANDLE wild;
  struct ud_pair pair;
  struct end other;
  struct end reliable;
  memset(&wild, 0, sizeof wild);
  assert_error(send_ud(f->active.ep, &from, &wild, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  pair = resolve_ud(f, &f->active, &f->passive);
  make_end(f, &other, &attr);
  make_end(f, &reliable, NULL);
  foreign = pair.to_active; /* the other end's */
  wild = pair.to_passive;
  wild.ah = (struct ibv_ah*)(void*)f;
  assert_error(send_ud(f->active.ep, &from, &foreign, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(send_ud(f->active.ep, &from, &wild, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  wild.ah = (struct ibv_ah*)(uintptr_t)1;
  assert_error(send_ud(f->active.ep, &from, &wild, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(send_ud(f->active.ep, &from, NULL, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(send_ud(other.ep, &from, &pair.to_passive, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(send_ud(reliable.ep, &from, &pair.to_passive, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_error(send_ud(f->pz, &from, &pair.to_passive, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_error(dat_ib_post_send_ud(f->active.ep, -1, &from, &pair.to_passive, cookie(1), DEFAULT),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_post_send_ud(f->active.ep, 5, many, &pair.to_passive, cookie(1), DEFAULT), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_error(dat_ib_post_send_ud(f->active.ep, 1, NULL, &pair.to_passive, cookie(1), DEFAULT), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  assert_error(dat_ib_post_send_ud(f->active.ep, 1, &from, &pair.to_passive, cookie(1), 0x100), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
  assert_error(dat_ib_post_send_ud(f->active.ep, 2, two_halves, &pair.to_passive, cookie(1), DEFAULT), DAT_LENGTH_ERROR,
               DAT_NO_SUBTYPE);
  expect_nothing(f->active.request);
}

static void ah_free__the_address_is_stale(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  const struct ud_pair second = resolve_ud(f, &f->active, &f->passive);
  assert_ok(dat_ib_ud_ah_free(f->active.ep, &pair.to_passive));
  assert_error(send_ud(f->active.ep, &from, &pair.to_passive, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(dat_ib_ud_ah_free(f->active.ep, &pair.to_passive), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_ud_ah_free(f->active.ep, &pair.to_active), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_ud_ah_free(f->active.ep, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_ud_ah_free(f->pz, &pair.to_active), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  /* The other address of the same peer stays valid. */
  assert_ok(send_ud(f->active.ep, &from, &second.to_passive, 2));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
}

static void cm_free__leaves_the_address(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_CONTEXT wild;
  wild.as_ptr = f;
  assert_error(dat_ib_ud_cm_free(f->active.ep, pair.passive_cm), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_ud_cm_free(f->active.ep, wild), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  wild.as_ptr = NULL;
  assert_error(dat_ib_ud_cm_free(f->active.ep, wild), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_ud_cm_free(f->pz, wild), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_ok(dat_ib_ud_cm_free(f->active.ep, pair.active_cm));
  assert_error(dat_ib_ud_cm_free(f->active.ep, pair.active_cm), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, 2));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_CONNECTED);
}

static void addresses__many_come_and_go(void** state) {
  struct fixture* f = *state;
  enum { kRounds = 4, kAtOnce = 24 };
  struct ud_pair pairs[kAtOnce];
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kAtOnce; ++i) pairs[i] = resolve_ud(f, &f->active, &f->passive);
    for (int i = 0; i < kAtOnce; ++i) {
      assert_ok(send_ud(f->active.ep, &from, &pairs[i].to_passive, 1));
      expect_ud_dto(f->active.request, 1, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
      assert_ok(dat_ib_ud_ah_free(f->active.ep, &pairs[i].to_passive));
      assert_ok(dat_ib_ud_cm_free(f->active.ep, pairs[i].active_cm));
      assert_error(send_ud(f->active.ep, &from, &pairs[i].to_passive, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    }
  }
}

/* ---- Life ---- */

static void ep_query__tells_of_datagrams(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param;
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  assert_int_equal((int)param.ep_attr.service_type, (int)DAT_IB_SERVICE_TYPE_UD);
  assert_int_equal(param.ep_attr.max_message_size, kMtu);
  assert_int_equal(param.ep_attr.max_rdma_size, 0);
  assert_int_equal(param.ep_attr.max_rdma_read_out, 0);
  param.ep_attr.service_type = DAT_SERVICE_TYPE_RC;
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &param), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  param.ep_attr.max_request_iov = 2;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param));
  (void)resolve_ud(f, &f->active, &f->passive);
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_CONNECTED);
}

static void ep_disconnect__changes_nothing(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG));
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, 2));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
  expect_nothing(f->active.connect);
  assert_error_type(dat_ep_reset(f->active.ep), DAT_INVALID_STATE);
}

static void failure__is_told_and_reset_heals_it(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_LMR_TRIPLET from = local(f, 0, 500);
  DAT_LMR_TRIPLET into = local(f, HALF, 100);
  struct ud_event event;
  DAT_DTO_COMPLETION_STATUS status;
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &into, cookie(7), DEFAULT));
  from.lmr_context ^= 0xff00;
  assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, 1));
  expect_ud(f->active.request, DAT_IB_DTO_EVENT, DAT_IB_UD_SEND, &event);
  status = event.event.event_data.dto_completion_event_data.status;
  /* Releases of rxe have used three statuses so far, one of them that of a flushed request. */
  assert_true(status == DAT_DTO_ERR_LOCAL_PROTECTION || status == DAT_DTO_ERR_LOCAL_EP ||
              status == DAT_DTO_ERR_FLUSHED);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_BROKEN);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
  expect_ud_dto(f->active.recv, 7, DAT_IB_DTO_RECV_UD, DAT_DTO_ERR_FLUSHED);
  assert_error_type(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                                   DAT_CONNECT_DEFAULT_FLAG),
                    DAT_INVALID_STATE);
  assert_ok(dat_ep_reset(f->active.ep));
  from = local(f, 0, 500);
  assert_error(send_ud(f->active.ep, &from, &pair.to_passive, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  pair = resolve_ud(f, &f->active, &f->passive);
  assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, 2));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
}

static void ep_free__whatever_goes_on(void** state) {
  struct fixture* f = *state;
  const DAT_EP_ATTR attr = ud_attributes();
  DAT_LMR_TRIPLET into = local(f, HALF, 100);
  struct end ends[3];
  struct ud_event event;
  DAT_CR_HANDLE cr;
  for (size_t i = 0; i < 3; ++i) make_end(f, &ends[i], &attr);
  begin_connect(f, &ends[0], NULL, 0); /* at once */
  free_end(&ends[0]);
  begin_connect(f, &ends[1], NULL, 0); /* while the passive end has not answered */
  assert_ok(dat_ep_post_recv(ends[1].ep, 1, &into, cookie(7), DEFAULT));
  do { /* the first request may have arrived */
    cr = take_ud_request(f);
    assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
    expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  } while (dat_evd_wait(ends[1].connect, SOON_US, 1, &event.event, &(DAT_COUNT){0}) != DAT_SUCCESS);
  begin_connect(f, &ends[1], NULL, 0);
  cr = take_ud_request(f);
  free_end(&ends[1]);
  assert_ok(dat_cr_accept(cr, ends[2].ep, 0, NULL)); /* the active end is freed before the event is dequeued */
  free_end(&ends[2]);
  begin_connect(f, &f->active, NULL, 0); /* the IA is closed with a request that waits */
}

static void counters__of_datagrams(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  DAT_LMR_TRIPLET into = local(f, HALF, 100);
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_UINT64 ep[DCNT_EP_ALL_COUNTERS];
  DAT_UINT64 ia[DCNT_IA_ALL_COUNTERS];
  for (uint64_t i = 0; i < 3; ++i) {
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(i), DEFAULT));
    assert_ok(send_ud(f->active.ep, &from, &pair.to_passive, i));
    expect_ud_dto(f->passive.recv, i, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
  }
  assert_ok(dat_ib_query_counters(f->active.ep, DCNT_EP_ALL_COUNTERS, ep, 0));
  assert_int_equal(ep[DCNT_EP_CONNECT], 1);
  assert_int_equal(ep[DCNT_EP_POST_SEND_UD], 3);
  assert_int_equal(ep[DCNT_EP_POST_SEND_UD_DATA], 30);
  assert_int_equal(ep[DCNT_EP_POST_SEND], 0);
  assert_ok(dat_ib_query_counters(f->passive.ep, DCNT_EP_ALL_COUNTERS, ep, 0));
  assert_int_equal(ep[DCNT_EP_RECV_UD], 3);
  assert_int_equal(ep[DCNT_EP_RECV_UD_DATA], 3 * (10 + GRH));
  assert_int_equal(ep[DCNT_EP_RECV], 0);
  assert_ok(dat_ib_query_counters(f->ia, DCNT_IA_ALL_COUNTERS, ia, 0));
  assert_int_equal(ia[DCNT_IA_CM_AH_REQ_TX], 1);
  assert_int_equal(ia[DCNT_IA_CM_AH_REQ_RX], 1);
  assert_int_equal(ia[DCNT_IA_CM_AH_RESOLVED], 2);
}

static void connect__address_of_another_family(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in6 other = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  DAT_EP_PARAM param;
  assert_error(dat_ep_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)&other, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                              DAT_CONNECT_DEFAULT_FLAG),
               DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  assert_null(param.remote_ia_address_ptr);
  assert_int_equal(param.remote_port_qual, 0);
}

static int set_up_ipv6_ends(void** state) {
  const DAT_EP_ATTR attr = ud_attributes();
  struct fixture* f;
  set_up_named_ia(state, IPV6_IA_NAME);
  f = *state;
  make_end(f, &f->active, &attr);
  make_end(f, &f->passive, &attr);
  listen_any(f);
  return 0;
}

static void ipv6__datagrams(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_LMR_TRIPLET from = local(f, 0, 10);
  DAT_LMR_TRIPLET into = local(f, HALF, 100);
  assert_int_equal(pair.to_passive.ia_addr.sin6_family, AF_INET6);
  fill(f->memory, 10, 3);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &into, cookie(1), DEFAULT));
  assert_ok(send_ud(f->passive.ep, &from, &pair.to_active, 2));
  expect_ud_dto(f->active.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF + GRH, 10, 3));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      UD_ENDS_TEST(send_ud__arrives_behind_a_routing_header),
      UD_ENDS_TEST(connect__address_of_another_family),
      UD_ENDS_TEST(send_ud__gathers_its_segments),
      UD_ENDS_TEST(send_ud__suppressed_ones_make_no_event),
      UD_ENDS_TEST(send_ud__takes_a_receive_of_a_shared_queue),
      UD_ENDS_TEST(endpoint__refuses_what_needs_a_connection),
      UD_ENDS_TEST(send_ud__bad_arguments),
      UD_ENDS_TEST(ah_free__the_address_is_stale),
      UD_ENDS_TEST(cm_free__leaves_the_address),
      UD_ENDS_TEST(addresses__many_come_and_go),
      UD_ENDS_TEST(ep_query__tells_of_datagrams),
      UD_ENDS_TEST(ep_disconnect__changes_nothing),
      UD_ENDS_TEST(failure__is_told_and_reset_heals_it),
      UD_ENDS_TEST(ep_free__whatever_goes_on),
      UD_ENDS_TEST(counters__of_datagrams),
      cmocka_unit_test_setup_teardown(ipv6__datagrams, set_up_ipv6_ends, tear_down),
  };
  return RUN_TESTS(tests);
}

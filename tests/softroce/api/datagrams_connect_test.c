/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Datagram endpoints: how they get each other's address, and failures. */
#include "tests/softroce/api/datagrams.h"

#include <arpa/inet.h>
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

/* ---- Getting each other's address ---- */

static void connect__gives_each_the_others_address(void** state) {
  struct fixture* f = *state;
  static const char asked[] = "who are you";
  static const char answered[] = "the server";
  DAT_CR_PARAM param;
  DAT_CR_HANDLE cr;
  struct ud_event here;
  struct ud_event there;
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONNECTED);
  begin_connect(f, &f->active, asked, sizeof asked);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  cr = take_ud_request(f);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_int_equal(param.private_data_size, sizeof asked);
  assert_memory_equal(param.private_data, asked, sizeof asked);
  assert_int_equal(((struct sockaddr_in*)(void*)param.remote_ia_address_ptr)->sin_addr.s_addr, htonl(0x0a090001));
  assert_ok(dat_cr_accept(cr, f->passive.ep, sizeof answered, (DAT_PVOID)(uintptr_t)answered));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &here);
  assert_ptr_equal(here.connection->ep_handle, f->active.ep);
  assert_int_equal(here.connection->private_data_size, sizeof answered);
  assert_memory_equal(here.connection->private_data, answered, sizeof answered);
  expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &there);
  assert_ptr_equal(there.connection->ep_handle, f->passive.ep);
  assert_int_equal(there.connection->private_data_size, sizeof asked);
  assert_memory_equal(there.connection->private_data, asked, sizeof asked);
  assert_non_null(here.extension->remote_ah.ah);
  assert_non_null(there.extension->remote_ah.ah);
  assert_non_null(here.extension->context.as_ptr);
  assert_true(here.extension->remote_ah.qpn != there.extension->remote_ah.qpn);
  assert_int_equal(((const struct sockaddr_in*)(const void*)&here.extension->remote_ah.ia_addr)->sin_addr.s_addr,
                   htonl(0x0a090001));
  assert_int_equal(here.extension->status, DAT_OP_SUCCESS);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_CONNECTED);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_CONNECTED);
}

static void connect__one_endpoint_has_many_peers(void** state) {
  struct fixture* f = *state;
  enum { kPeers = 7 };
  const DAT_EP_ATTR attr = ud_attributes();
  DAT_LMR_TRIPLET from = local(f, 0, 16);
  struct end peers[kPeers];
  DAT_IB_ADDR_HANDLE to[kPeers];
  struct ud_event event;
  for (size_t i = 0; i < kPeers; ++i) {
    const DAT_LMR_TRIPLET into = local(f, HALF + 4096 * i, 64);
    make_end(f, &peers[i], &attr);
    assert_ok(dat_ep_post_recv(peers[i].ep, 1, (DAT_LMR_TRIPLET*)(uintptr_t)&into, cookie(i), DEFAULT));
    begin_connect(f, &f->active, NULL, 0);
  }
  for (size_t i = 0; i < kPeers; ++i) assert_ok(dat_cr_accept(take_ud_request(f), peers[i].ep, 0, NULL));
  for (size_t i = 0; i < kPeers; ++i) {
    expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
    to[i] = event.extension->remote_ah;
    expect_ud(peers[i].connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  }
  for (size_t i = 0; i < kPeers; ++i) {
    assert_ok(send_ud(f->active.ep, &from, &to[i], i));
    expect_ud_dto(f->active.request, i, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
  }
  for (size_t i = 0; i < kPeers; ++i) expect_ud_dto(peers[i].recv, i, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
}

static void connect__one_service_point_is_asked_by_both_kinds(void** state) {
  struct fixture* f = *state;
  struct end reliable[2];
  struct ud_event event;
  DAT_CR_HANDLE cr;
  make_end(f, &reliable[0], NULL);
  make_end(f, &reliable[1], NULL);
  begin_connect(f, &reliable[0], NULL, 0);
  cr = take_request(f);
  assert_error(dat_cr_accept(cr, f->passive.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_ok(dat_cr_accept(cr, reliable[1].ep, 0, NULL));
  expect_event(reliable[0].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(reliable[1].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  begin_connect(f, &f->active, NULL, 0);
  cr = take_ud_request(f);
  assert_error(dat_cr_accept(cr, reliable[1].ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
}

static void connect__to_a_service_point_older_than_the_endpoints(void** state) {
  struct fixture* f = *state;
  const DAT_EP_ATTR attr = ud_attributes();
  listen_any(f);
  make_end(f, &f->active, &attr);
  make_end(f, &f->passive, &attr);
  (void)resolve_ud(f, &f->active, &f->passive);
}

static void connect__to_a_reserved_endpoint(void** state) {
  struct fixture* f = *state;
  struct ud_event event;
  DAT_RSP_HANDLE rsp;
  assert_ok(dat_rsp_create(f->ia, 4711, f->passive.ep, f->requests, &rsp));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_RESERVED);
  assert_ok(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, 4711, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  expect_ud(f->requests, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_IB_UD_CONNECT_REQUEST, &event);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  assert_ok(dat_cr_accept(event.event.event_data.cr_arrival_event_data.cr_handle, DAT_HANDLE_NULL, 0, NULL));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
  expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
}

static void connect__to_an_endpoint_the_provider_makes(void** state) {
  struct fixture* f = *state;
  struct ud_event event;
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL port;
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  DAT_EP_PARAM ep;
  assert_ok(dat_psp_create_any(f->ia, &port, f->requests, DAT_PSP_PROVIDER_FLAG, &psp));
  assert_ok(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  expect_ud(f->requests, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_IB_UD_CONNECT_REQUEST, &event);
  cr = event.event.event_data.cr_arrival_event_data.cr_handle;
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_ok(dat_ep_query(param.local_ep_handle, DAT_EP_FIELD_ALL, &ep));
  assert_int_equal((int)ep.ep_attr.service_type, (int)DAT_IB_SERVICE_TYPE_UD);
  ep.pz_handle = f->pz;
  ep.connect_evd_handle = f->passive.connect;
  assert_ok(dat_ep_modify(param.local_ep_handle, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &ep));
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
  expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  assert_ptr_equal(event.connection->ep_handle, param.local_ep_handle);
}

static void cr_handoff__to_another_service_point(void** state) {
  struct fixture* f = *state;
  struct ud_event event;
  DAT_PSP_HANDLE other;
  DAT_CR_PARAM param;
  DAT_CR_HANDLE cr;
  assert_ok(dat_psp_create(f->ia, 4712, f->requests, DAT_PSP_CONSUMER_FLAG, &other));
  begin_connect(f, &f->active, "hello", 6);
  assert_ok(dat_cr_handoff(take_ud_request(f), 4712));
  expect_ud(f->requests, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_IB_UD_CONNECT_REQUEST, &event);
  assert_ptr_equal(event.event.event_data.cr_arrival_event_data.sp_handle.psp_handle, other);
  cr = event.event.event_data.cr_arrival_event_data.cr_handle;
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_string_equal(param.private_data, "hello");
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
}

/* ---- Refusals ---- */

static void expect_refused(const struct fixture* f, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type, const void* data,
                           DAT_COUNT size) {
  struct ud_event event;
  expect_ud(f->active.connect, number, type, &event);
  assert_ptr_equal(event.connection->ep_handle, f->active.ep);
  assert_int_equal(event.connection->private_data_size, size);
  if (size) assert_memory_equal(event.connection->private_data, data, (size_t)size);
  assert_null(event.extension->remote_ah.ah);
  assert_int_equal(event.extension->status, DAT_IB_OP_ERR);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONNECTED);
  assert_ok(dat_ib_ud_cm_free(f->active.ep, event.extension->context));
}

static void cr_reject__is_told_with_its_data(void** state) {
  struct fixture* f = *state;
  static const char sorry[] = "sorry";
  begin_connect(f, &f->active, NULL, 0);
  assert_ok(dat_cr_reject(take_ud_request(f), sizeof sorry, (DAT_PVOID)(uintptr_t)sorry));
  expect_refused(f, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, sorry, sizeof sorry);
  begin_connect(f, &f->active, NULL, 0);
  assert_ok(dat_cr_reject(take_ud_request(f), 0, NULL));
  expect_refused(f, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, NULL, 0);
  /* and nothing is damaged */
  (void)resolve_ud(f, &f->active, &f->passive);
}

static void connect__nobody_listens(void** state) {
  struct fixture* f = *state;
  assert_ok(dat_psp_free(f->psp));
  begin_connect(f, &f->active, NULL, 0);
  expect_refused(f, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, NULL, 0);
}

static void connect__nobody_answers(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in absent;
  memset(&absent, 0, sizeof absent);
  absent.sin_family = AF_INET;
  absent.sin_addr.s_addr = htonl(0x0a0900c8);
  assert_ok(dat_ep_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)(void*)&absent, f->port, WAIT_US, 0, NULL,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
  expect_refused(f, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, NULL, 0);
}

static void connect__time_is_up(void** state) {
  struct fixture* f = *state;
  DAT_CR_HANDLE cr;
  struct ud_event event;
  assert_ok(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, f->port, 2000000, 0, NULL, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  cr = take_ud_request(f); /* and does not answer */
  expect_refused(f, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, NULL, 0);
  /* The passive end is not informed that the active end has given up. */
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  expect_nothing(f->active.connect);
}

static void connect__request_goes_with_its_dispatcher(void** state) {
  struct fixture* f = *state;
  begin_connect(f, &f->active, NULL, 0);
  expect_nothing(f->active.connect);
  assert_ok(dat_psp_free(f->psp));
  assert_ok(dat_evd_free(f->requests));
  expect_refused(f, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, NULL, 0);
}

static void private_data__as_much_as_there_is_room_for(void** state) {
  struct fixture* f = *state;
  enum { kAsk = 56, kReply = 124 };
  unsigned char data[kReply + 1];
  struct ud_event event;
  DAT_CR_HANDLE cr;
  fill(data, sizeof data, 1);
  assert_error(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, f->port, WAIT_US, kAsk + 1, data,
                              DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  begin_connect(f, &f->active, data, kAsk);
  cr = take_ud_request(f);
  assert_error(dat_cr_accept(cr, f->passive.ep, kReply + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_ok(dat_cr_accept(cr, f->passive.ep, kReply, data));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
  assert_int_equal(event.connection->private_data_size, kReply);
  assert_memory_equal(event.connection->private_data, data, kReply);
  expect_ud(f->passive.connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  assert_int_equal(event.connection->private_data_size, kAsk);
  assert_memory_equal(event.connection->private_data, data, kAsk);
  begin_connect(f, &f->active, NULL, 0);
  cr = take_ud_request(f);
  assert_error(dat_cr_reject(cr, kReply + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(dat_cr_reject(cr, kReply, data));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, &event);
  assert_int_equal(event.connection->private_data_size, kReply);
  assert_memory_equal(event.connection->private_data, data, kReply);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      UD_ENDS_TEST(connect__gives_each_the_others_address),
      UD_ENDS_TEST(connect__one_endpoint_has_many_peers),
      UD_ENDS_TEST(connect__one_service_point_is_asked_by_both_kinds),
      IA_TEST(connect__to_a_service_point_older_than_the_endpoints),
      UD_ENDS_TEST(connect__to_a_reserved_endpoint),
      UD_ENDS_TEST(connect__to_an_endpoint_the_provider_makes),
      UD_ENDS_TEST(cr_handoff__to_another_service_point),
      UD_ENDS_TEST(cr_reject__is_told_with_its_data),
      UD_ENDS_TEST(connect__nobody_listens),
      UD_ENDS_TEST(connect__nobody_answers),
      UD_ENDS_TEST(connect__time_is_up),
      UD_ENDS_TEST(connect__request_goes_with_its_dispatcher),
      UD_ENDS_TEST(private_data__as_much_as_there_is_room_for),
  };
  return RUN_TESTS(tests);
}

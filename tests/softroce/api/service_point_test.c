/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The places where connection requests arrive: reserved service points, public ones whose provider makes the endpoints,
 * and common ones; and the ways to answer a request: accept, reject, hand over to another service point.
 */
#include <netinet/in.h>
#include <string.h>

#include "tests/softroce/api/api.h"

/* Above 16 bits. It stands for port 63534, which is above the ports that the kernel gives to connections. */
#define RESERVED_QUAL UINT64_C(0x1237b84)

static const char kGreeting[] = "from the active side";
static const char kAnswer[] = "from the passive side";

/* A request that arrived at the service point of this handle. */
static DAT_CR_HANDLE take_request_of(struct fixture* f, DAT_HANDLE service_point, DAT_CONN_QUAL qual) {
  const DAT_EVENT event = expect_event(f->requests, DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_ARRIVAL_EVENT_DATA* data = &event.event_data.cr_arrival_event_data;
  assert_ptr_equal(data->sp_handle.rsp_handle, service_point);
  assert_int_equal(data->conn_qual, qual);
  assert_int_equal(data->truncate_flag, DAT_FALSE);
  return data->cr_handle;
}

static void connect_to(struct fixture* f, struct end* end, DAT_CONN_QUAL qual) {
  assert_ok(dat_ep_connect(end->ep, f->attr.ia_address_ptr, qual, WAIT_US, sizeof kGreeting,
                           (void*)(uintptr_t)kGreeting, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static DAT_CR_PARAM query(DAT_CR_HANDLE cr) {
  DAT_CR_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  return param;
}

static void expect_both_established(struct fixture* f, DAT_EVD_HANDLE passive_connect, DAT_EP_HANDLE passive_ep) {
  DAT_EVENT event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ptr_equal(event.event_data.connect_event_data.ep_handle, f->active.ep);
  event = expect_event(passive_connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ptr_equal(event.event_data.connect_event_data.ep_handle, passive_ep);
}

/* Sends one message from the active end to an EP, whose receives complete on that EVD. */
static void send_to(struct fixture* f, DAT_EP_HANDLE ep, DAT_EVD_HANDLE recv) {
  DAT_LMR_TRIPLET from = local(f, 0, 1000);
  DAT_LMR_TRIPLET to = local(f, HALF, 1000);
  fill(f->memory, 1000, 7);
  memset(f->memory + HALF, 0, 1000);
  assert_ok(dat_ep_post_recv(ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_dto(f->active.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF, 1000, 7));
}

static DAT_RSP_HANDLE reserve(struct fixture* f, DAT_CONN_QUAL qual) {
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  assert_ok(dat_rsp_create(f->ia, qual, f->passive.ep, f->requests, &rsp));
  return rsp;
}

static void rsp__is_what_it_was_made_of(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  DAT_RSP_PARAM param;
  DAT_HANDLE_TYPE type;
  assert_ok(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_int_equal(param.conn_qual, RESERVED_QUAL);
  assert_ptr_equal(param.evd_handle, f->requests);
  assert_ptr_equal(param.ep_handle, f->passive.ep);
  assert_ok(dat_get_handle_type(rsp, &type));
  assert_int_equal(type, DAT_HANDLE_TYPE_RSP);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_RESERVED);
}

static void rsp__reserved_ep_is_not_the_consumers(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  DAT_RSP_HANDLE other;
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_error(dat_ep_free(f->passive.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
  assert_error(dat_ep_reset(f->passive.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
  assert_error(dat_ep_disconnect(f->passive.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_RESERVED);
  assert_error(dat_rsp_create(f->ia, RESERVED_QUAL + 1, f->passive.ep, f->requests, &other), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_RESERVED);
  assert_error(dat_ep_connect(f->passive.ep, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                              DAT_CONNECT_DEFAULT_FLAG),
               DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_rsp_free(rsp));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_UNCONNECTED);
  assert_error_type(dat_rsp_free(rsp), DAT_INVALID_HANDLE);
}

static void expect_peer(DAT_EP_HANDLE ep, const DAT_CR_PARAM* request) {
  DAT_EP_PARAM param;
  assert_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
  if (!request) {
    assert_null(param.remote_ia_address_ptr);
    assert_int_equal(param.remote_port_qual, 0);
    assert_int_equal(param.local_port_qual, 0);
    return;
  }
  assert_non_null(param.remote_ia_address_ptr);
  assert_int_equal(((struct sockaddr_in*)(void*)param.remote_ia_address_ptr)->sin_addr.s_addr,
                   ((struct sockaddr_in*)(void*)request->remote_ia_address_ptr)->sin_addr.s_addr);
  assert_int_equal(param.remote_port_qual, request->remote_port_qual);
  assert_int_not_equal(param.local_port_qual, 0);
}

static void rsp__one_request_takes_the_ep(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  struct end late;
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  connect_to(f, &f->active, RESERVED_QUAL);
  cr = take_request_of(f, rsp, RESERVED_QUAL);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  param = query(cr);
  assert_ptr_equal(param.local_ep_handle, f->passive.ep);
  assert_memory_equal(param.private_data, kGreeting, sizeof kGreeting);
  expect_peer(f->passive.ep, &param);
  assert_error(dat_ep_free(f->passive.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING);

  make_end(f, &late, NULL);
  connect_to(f, &late, RESERVED_QUAL);
  expect_event(late.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);

  assert_error(dat_cr_accept(cr, late.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, sizeof kAnswer, (void*)(uintptr_t)kAnswer));
  expect_both_established(f, f->passive.connect, f->passive.ep);
  send_to(f, f->passive.ep, f->passive.recv);
  assert_ok(dat_rsp_free(rsp));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_CONNECTED);
}

static void rsp__accepted_with_its_own_ep_named(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, 77);
  DAT_RSP_PARAM param;
  connect_to(f, &f->active, 77);
  assert_ok(dat_cr_accept(take_request_of(f, rsp, 77), f->passive.ep, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
  free_end(&f->passive);
  assert_ok(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
  assert_ptr_equal(param.ep_handle, DAT_HANDLE_NULL);
}

static void rsp__rejected_the_ep_is_unconnected(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  DAT_RSP_HANDLE again;
  connect_to(f, &f->active, RESERVED_QUAL);
  assert_ok(dat_cr_reject(take_request_of(f, rsp, RESERVED_QUAL), 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_UNCONNECTED);
  expect_peer(f->passive.ep, NULL);
  again = reserve(f, RESERVED_QUAL);
  assert_ok(dat_rsp_free(rsp));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_RESERVED);
  assert_ok(dat_rsp_free(again));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_UNCONNECTED);
}

static void rsp__freed_before_a_request_nobody_listens(void** state) {
  struct fixture* f = *state;
  assert_ok(dat_rsp_free(reserve(f, RESERVED_QUAL)));
  connect_to(f, &f->active, RESERVED_QUAL);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void rsp__freed_with_a_request_that_stays_valid(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  DAT_CR_HANDLE cr;
  connect_to(f, &f->active, RESERVED_QUAL);
  cr = take_request_of(f, rsp, RESERVED_QUAL);
  assert_ok(dat_rsp_free(rsp));
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
}

/* The request is never dequeued: the tear-down closes the IA while all objects still use each other. */
static void rsp__ia_closed_with_a_request_waiting(void** state) {
  struct fixture* f = *state;
  reserve(f, RESERVED_QUAL);
  connect_to(f, &f->active, RESERVED_QUAL);
  for (int i = 0; i < 200 && state_of(f->passive.ep) == DAT_EP_STATE_RESERVED; ++i) expect_nothing(f->active.request);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
}

/* ---- Endpoints that the provider makes ---- */

static DAT_PSP_HANDLE listen_with_eps(struct fixture* f, DAT_CONN_QUAL* qual) {
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_PSP_PARAM param;
  assert_int_equal(f->provider.ep_creator, DAT_PSP_CREATES_EP_IFASKED);
  assert_ok(dat_psp_create_any(f->ia, qual, f->requests, DAT_PSP_PROVIDER_FLAG, &psp));
  assert_ok(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
  assert_int_equal(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
  return psp;
}

static DAT_CR_HANDLE take_request_with_ep(struct fixture* f, DAT_EP_HANDLE* ep) {
  DAT_CONN_QUAL qual = 0;
  const DAT_PSP_HANDLE psp = listen_with_eps(f, &qual);
  DAT_CR_HANDLE cr;
  connect_to(f, &f->active, qual);
  cr = take_request_of(f, psp, qual);
  *ep = query(cr).local_ep_handle;
  assert_non_null(*ep);
  return cr;
}

static void provider_ep__comes_unconfigured(void** state) {
  struct fixture* f = *state;
  DAT_EP_HANDLE ep;
  DAT_EP_PARAM param;
  DAT_CR_PARAM request;
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  const DAT_CR_HANDLE cr = take_request_with_ep(f, &ep);
  assert_int_equal(state_of(ep), DAT_EP_STATE_UNCONFIGURED_TENTATIVE);
  request = query(cr);
  expect_peer(ep, &request);
  assert_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
  assert_int_equal(param.ep_state, DAT_EP_STATE_UNCONFIGURED_TENTATIVE);
  assert_null(param.pz_handle);
  assert_null(param.recv_evd_handle);
  assert_null(param.request_evd_handle);
  assert_null(param.connect_evd_handle);
  assert_error(dat_ep_free(ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFTENTATIVE);
  assert_error(dat_ep_post_recv(ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONFTENTATIVE);
  assert_error(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ);
  assert_error(dat_cr_accept(cr, f->passive.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

static void configure(struct fixture* f, DAT_EP_HANDLE ep, const struct end* evds) {
  DAT_EP_PARAM param;
  memset(&param, 0xa5, sizeof param);
  param.pz_handle = f->pz;
  param.recv_evd_handle = evds->recv;
  param.request_evd_handle = evds->request;
  param.connect_evd_handle = evds->connect;
  assert_ok(dat_ep_modify(ep,
                          DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                              DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                          &param));
}

/* The numbers of concurrent RDMA Reads, seen from the other side. */
static void provider_ep__matches_the_request(void** state) {
  SKIP_ON_IWARP();
  struct fixture* f = *state;
  DAT_EP_PARAM param;
  DAT_CONN_QUAL qual = 0;
  const DAT_PSP_HANDLE psp = listen_with_eps(f, &qual);
  struct end active;
  DAT_CR_HANDLE cr;
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  param.ep_attr.max_rdma_read_in = 2;
  param.ep_attr.max_rdma_read_out = 9;
  make_end(f, &active, &param.ep_attr);
  connect_to(f, &active, qual);
  cr = take_request_of(f, psp, qual);
  assert_ok(dat_ep_query(query(cr).local_ep_handle, DAT_EP_FIELD_ALL, &param));
  assert_int_equal(param.ep_attr.max_rdma_read_in, 9);
  assert_int_equal(param.ep_attr.max_rdma_read_out, 2);
}

static void provider_ep__configured_and_accepted(void** state) {
  struct fixture* f = *state;
  DAT_EP_HANDLE ep;
  const DAT_CR_HANDLE cr = take_request_with_ep(f, &ep);
  configure(f, ep, &f->passive);
  assert_int_equal(state_of(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, sizeof kAnswer, (void*)(uintptr_t)kAnswer));
  expect_both_established(f, f->passive.connect, ep);
  send_to(f, ep, f->passive.recv);
  assert_ok(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_ok(dat_ep_free(ep));
}

static void provider_ep__goes_with_its_rejected_request(void** state) {
  struct fixture* f = *state;
  DAT_EP_HANDLE ep;
  const DAT_CR_HANDLE cr = take_request_with_ep(f, &ep);
  configure(f, ep, &f->passive);
  assert_ok(dat_cr_reject(cr, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  assert_error_type(dat_ep_get_status(ep, NULL, NULL, NULL), DAT_INVALID_HANDLE);
  assert_ok(dat_ep_free(f->passive.ep));
  assert_ok(dat_evd_free(f->passive.recv)); /* nothing uses it any more */
}

static void provider_ep__each_request_has_its_own(void** state) {
  struct fixture* f = *state;
  struct end second;
  DAT_CONN_QUAL qual = 0;
  const DAT_PSP_HANDLE psp = listen_with_eps(f, &qual);
  DAT_CR_HANDLE one;
  DAT_CR_HANDLE two;
  make_end(f, &second, NULL);
  connect_to(f, &f->active, qual);
  one = take_request_of(f, psp, qual);
  connect_to(f, &second, qual);
  two = take_request_of(f, psp, qual);
  assert_ptr_not_equal(query(one).local_ep_handle, query(two).local_ep_handle);
}

/* ---- Common service points ---- */

static DAT_COMM stream(void) {
  const DAT_COMM comm = {AF_INET, SOCK_STREAM, IPPROTO_TCP};
  return comm;
}

static DAT_CSP_HANDLE listen_common(struct fixture* f, struct sockaddr_in* where) {
  DAT_COMM comm = stream();
  DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
  DAT_CSP_PARAM param;
  memcpy(where, f->attr.ia_address_ptr, sizeof *where);
  where->sin_port = 0;
  assert_ok(dat_csp_create(f->ia, &comm, (DAT_IA_ADDRESS_PTR)where, f->requests, &csp));
  assert_ok(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_ptr_equal(param.evd_handle, f->requests);
  assert_int_equal(param.comm->domain, AF_INET);
  assert_int_equal(param.comm->type, SOCK_STREAM);
  assert_int_equal(param.comm->protocol, IPPROTO_TCP);
  memcpy(where, param.address_ptr, sizeof *where);
  assert_int_not_equal(where->sin_port, 0);
  return csp;
}

static void csp__common_connect(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in where;
  const DAT_CSP_HANDLE csp = listen_common(f, &where);
  DAT_EP_PARAM param;
  DAT_HANDLE_TYPE type;
  DAT_CR_HANDLE cr;
  assert_ok(dat_get_handle_type(csp, &type));
  assert_int_equal(type, DAT_HANDLE_TYPE_CSP);
  assert_ok(dat_ep_common_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)&where, WAIT_US, sizeof kGreeting,
                                  (void*)(uintptr_t)kGreeting));
  cr = take_request_of(f, csp, ntohs(where.sin_port));
  assert_memory_equal(query(cr).private_data, kGreeting, sizeof kGreeting);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
  send_to(f, f->passive.ep, f->passive.recv);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  assert_int_equal(param.remote_port_qual, ntohs(where.sin_port));
  assert_int_equal(param.comm.domain, AF_INET);
  assert_ok(dat_csp_free(csp));
  assert_error_type(dat_csp_free(csp), DAT_INVALID_HANDLE);
}

/* ---- Handing a request over ---- */

static void handoff__to_another_public_service_point(void** state) {
  struct fixture* f = *state;
  DAT_CONN_QUAL qual = 0;
  DAT_PSP_HANDLE psp;
  DAT_EVD_HANDLE evd;
  DAT_EVENT event;
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
  assert_ok(dat_psp_create_any(f->ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
  begin_connect(f, &f->active, kGreeting, sizeof kGreeting);
  cr = take_request(f);
  assert_ok(dat_cr_handoff(cr, qual));
  assert_error_type(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE);
  event = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT);
  assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
  assert_int_equal(event.event_data.cr_arrival_event_data.conn_qual, qual);
  cr = event.event_data.cr_arrival_event_data.cr_handle;
  assert_memory_equal(query(cr).private_data, kGreeting, sizeof kGreeting);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
  send_to(f, f->passive.ep, f->passive.recv);
}

static void handoff__to_a_reserved_service_point(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve(f, RESERVED_QUAL);
  begin_connect(f, &f->active, kGreeting, sizeof kGreeting);
  assert_ok(dat_cr_handoff(take_request(f), RESERVED_QUAL));
  assert_ok(dat_cr_accept(take_request_of(f, rsp, RESERVED_QUAL), DAT_HANDLE_NULL, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
}

static void handoff__nobody_there_changes_nothing(void** state) {
  struct fixture* f = *state;
  DAT_CR_HANDLE cr;
  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  assert_error(dat_cr_handoff(cr, RESERVED_QUAL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_both_established(f, f->passive.connect, f->passive.ep);
}

/* A reserved service point for which the provider makes the endpoint. */
static DAT_RSP_HANDLE reserve_without_ep(struct fixture* f) {
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  assert_ok(dat_rsp_create(f->ia, RESERVED_QUAL, DAT_HANDLE_NULL, f->requests, &rsp));
  return rsp;
}

static DAT_EP_HANDLE ep_of(DAT_RSP_HANDLE rsp) {
  DAT_RSP_PARAM param;
  assert_ok(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
  return param.ep_handle;
}

static void rsp__without_an_ep_the_request_brings_one(void** state) {
  struct fixture* f = *state;
  const DAT_RSP_HANDLE rsp = reserve_without_ep(f);
  struct end late;
  DAT_CR_HANDLE cr;
  DAT_EP_HANDLE ep;
  assert_null(ep_of(rsp));
  connect_to(f, &f->active, RESERVED_QUAL);
  cr = take_request_of(f, rsp, RESERVED_QUAL);
  ep = query(cr).local_ep_handle;
  assert_non_null(ep);
  assert_ptr_equal(ep_of(rsp), ep);
  assert_int_equal(state_of(ep), DAT_EP_STATE_UNCONFIGURED_TENTATIVE);

  make_end(f, &late, NULL);
  connect_to(f, &late, RESERVED_QUAL);
  expect_event(late.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);

  configure(f, ep, &f->passive);
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
  expect_both_established(f, f->passive.connect, ep);
  send_to(f, ep, f->passive.recv);
  assert_ptr_equal(ep_of(rsp), ep);
  assert_ok(dat_ep_free(ep));
  assert_null(ep_of(rsp));
  assert_ok(dat_rsp_free(rsp));
}

static void rsp__without_an_ep_rejected_or_freed(void** state) {
  struct fixture* f = *state;
  DAT_RSP_HANDLE rsp = reserve_without_ep(f);
  DAT_EP_HANDLE ep;
  DAT_CR_HANDLE cr;
  connect_to(f, &f->active, RESERVED_QUAL);
  cr = take_request_of(f, rsp, RESERVED_QUAL);
  ep = query(cr).local_ep_handle;
  assert_ok(dat_cr_reject(cr, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  assert_null(ep_of(rsp));
  assert_error_type(dat_ep_get_status(ep, NULL, NULL, NULL), DAT_INVALID_HANDLE);
  assert_ok(dat_rsp_free(rsp));

  rsp = reserve_without_ep(f);
  assert_ok(dat_ep_reset(f->active.ep));
  connect_to(f, &f->active, RESERVED_QUAL);
  cr = take_request_of(f, rsp, RESERVED_QUAL);
  assert_ok(dat_rsp_free(rsp)); /* the request and its endpoint stay */
  configure(f, query(cr).local_ep_handle, &f->passive);
  ep = query(cr).local_ep_handle;
  assert_ok(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
  expect_both_established(f, f->passive.connect, ep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(rsp__is_what_it_was_made_of),
      ENDS_TEST(rsp__reserved_ep_is_not_the_consumers),
      ENDS_TEST(rsp__one_request_takes_the_ep),
      ENDS_TEST(rsp__accepted_with_its_own_ep_named),
      ENDS_TEST(rsp__rejected_the_ep_is_unconnected),
      ENDS_TEST(rsp__freed_before_a_request_nobody_listens),
      ENDS_TEST(rsp__freed_with_a_request_that_stays_valid),
      ENDS_TEST(rsp__ia_closed_with_a_request_waiting),
      ENDS_TEST(rsp__without_an_ep_the_request_brings_one),
      ENDS_TEST(rsp__without_an_ep_rejected_or_freed),
      ENDS_TEST(provider_ep__comes_unconfigured),
      ENDS_TEST(provider_ep__matches_the_request),
      ENDS_TEST(provider_ep__configured_and_accepted),
      ENDS_TEST(provider_ep__goes_with_its_rejected_request),
      ENDS_TEST(provider_ep__each_request_has_its_own),
      ENDS_TEST(csp__common_connect),
      ENDS_TEST(handoff__to_another_public_service_point),
      ENDS_TEST(handoff__to_a_reserved_service_point),
      ENDS_TEST(handoff__nobody_there_changes_nothing),
  };
  return RUN_TESTS(tests);
}

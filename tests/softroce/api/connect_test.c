/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dat_ep_connect and dat_ep_dup_connect: their arguments, private data up to its limits, time-outs, and the events at
 * both ends; the same over IPv6.
 */
#include <arpa/inet.h>
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/softroce/api/api.h"

enum { kMaxRequest = 56, kMaxAccept = 196, kMaxReject = 144 };

static DAT_RETURN connect_with(struct fixture* f, DAT_TIMEOUT timeout, DAT_COUNT size, const void* data, int qos,
                               int flags) {
  return dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, f->port, timeout, size, (void*)(uintptr_t)data,
                        (DAT_QOS)qos, (DAT_CONNECT_FLAGS)flags);
}

static void private_data__as_much_as_there_is_room_for(void** state) {
  struct fixture* f = *state;
  unsigned char data[kMaxAccept + 1];
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  DAT_EVENT event;
  fill(data, sizeof data, 5);
  assert_ok(connect_with(f, WAIT_US, kMaxRequest, data, 0, 0));
  cr = take_request(f);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_int_equal(param.private_data_size, kMaxRequest);
  assert_memory_equal(param.private_data, data, kMaxRequest);
  assert_null(param.local_ep_handle);
  assert_error(dat_cr_accept(cr, f->passive.ep, kMaxAccept + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_ok(dat_cr_accept(cr, f->passive.ep, kMaxAccept, data));
  event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_true(event.event_data.connect_event_data.private_data_size >= kMaxAccept);
  assert_memory_equal(event.event_data.connect_event_data.private_data, data, kMaxAccept);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void private_data__of_a_reject(void** state) {
  struct fixture* f = *state;
  unsigned char data[kMaxReject + 1];
  DAT_CR_HANDLE cr;
  DAT_EVENT event;
  fill(data, sizeof data, 6);
  assert_ok(connect_with(f, WAIT_US, 0, NULL, 0, 0));
  cr = take_request(f);
  assert_error(dat_cr_reject(cr, kMaxReject + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_ok(dat_cr_reject(cr, kMaxReject, data));
  event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  assert_true(event.event_data.connect_event_data.private_data_size >= kMaxReject);
  assert_memory_equal(event.event_data.connect_event_data.private_data, data, kMaxReject);
}

static void connect__times_out_when_nobody_answers(void** state) {
  struct fixture* f = *state;
  DAT_CR_HANDLE cr;
  DAT_EVENT event;
  assert_ok(connect_with(f, SOON_US, 0, NULL, 0, 0));
  cr = take_request(f);
  event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_TIMED_OUT);
  assert_ptr_equal(event.event_data.connect_event_data.ep_handle, f->active.ep);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
  expect_nothing(f->active.connect);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_DISCONNECTED);
}

static void dup_connect__to_the_same_service_point(void** state) {
  struct fixture* f = *state;
  const char data[kMaxRequest + 1] = "again";
  struct end second;
  struct end third;
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  DAT_EP_PARAM one;
  DAT_EP_PARAM two;
  make_end(f, &second, NULL);
  make_end(f, &third, NULL);
  assert_error(dat_ep_dup_connect(second.ep, third.ep, WAIT_US, 0, NULL, 0), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONNECTED);
  assert_error(dat_ep_dup_connect(second.ep, f->pz, WAIT_US, 0, NULL, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  assert_error(dat_ep_dup_connect(second.ep, f->active.ep, 0, 0, NULL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_ep_dup_connect(second.ep, f->active.ep, WAIT_US, sizeof data, (void*)(uintptr_t)data, 0),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(dat_ep_dup_connect(second.ep, f->active.ep, WAIT_US, 0, NULL, (DAT_QOS)64), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
  assert_error(dat_ep_dup_connect(f->passive.ep, f->active.ep, WAIT_US, 0, NULL, 0), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_CONNECTED);
  assert_ok(dat_ep_dup_connect(second.ep, f->active.ep, WAIT_US, 6, (void*)(uintptr_t)data, DAT_QOS_BEST_EFFORT));
  cr = take_request(f);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_memory_equal(param.private_data, data, 6);
  assert_ok(dat_cr_accept(cr, third.ep, 0, NULL));
  expect_event(second.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(third.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &one));
  assert_ok(dat_ep_query(second.ep, DAT_EP_FIELD_ALL, &two));
  assert_int_equal(two.remote_port_qual, one.remote_port_qual);
}

/* ---- IPv6 ---- */

static void assert_ipv6(DAT_IA_ADDRESS_PTR address, const char* text) {
  char found[INET6_ADDRSTRLEN];
  assert_non_null(address);
  assert_int_equal(address->sa_family, AF_INET6);
  inet_ntop(AF_INET6, &((const struct sockaddr_in6*)(const void*)address)->sin6_addr, found, sizeof found);
  assert_string_equal(found, text);
}

static int set_up_ipv6(void** state) {
  set_up_named_ia(state, IPV6_IA_NAME);
  struct fixture* f = *state;
  make_end(f, &f->active, NULL);
  make_end(f, &f->passive, NULL);
  listen_any(f);
  return 0;
}

static void ipv6__addresses_on_both_sides(void** state) {
  struct fixture* f = *state;
  DAT_EVENT event;
  DAT_CR_PARAM cr_param;
  DAT_EP_PARAM active;
  DAT_EP_PARAM passive;
  DAT_CR_HANDLE cr;
  assert_ipv6(f->attr.ia_address_ptr, "fd09::1");
  begin_connect(f, &f->active, "hello", 6);
  event = expect_event(f->requests, DAT_CONNECTION_REQUEST_EVENT);
  assert_ipv6(event.event_data.cr_arrival_event_data.local_ia_address_ptr, "fd09::1");
  cr = event.event_data.cr_arrival_event_data.cr_handle;
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_param));
  assert_ipv6(cr_param.remote_ia_address_ptr, "fd09::1");
  assert_memory_equal(cr_param.private_data, "hello", 6);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &active));
  assert_ok(dat_ep_query(f->passive.ep, DAT_EP_FIELD_ALL, &passive));
  assert_ipv6(active.local_ia_address_ptr, "fd09::1");
  assert_ipv6(active.remote_ia_address_ptr, "fd09::1");
  assert_ipv6(passive.remote_ia_address_ptr, "fd09::1");
  assert_int_equal(active.remote_port_qual, f->port);
  assert_int_equal(passive.local_port_qual, f->port);
  assert_int_equal(passive.remote_port_qual, active.local_port_qual);
  assert_int_not_equal(active.local_port_qual, 0);
  assert_int_equal(active.comm.domain, AF_INET6);
}

static void ipv6__data_moves(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 100000);
  const DAT_RMR_TRIPLET to = remote(f, HALF, 100000);
  connect_ends(f);
  fill(f->memory, 100000, 9);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(4), &to, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, 4);
  sync_for_write(f, HALF, 100000);
  assert_true(is_filled(f->memory + HALF, 100000, 9));
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void ipv6__common_service_point(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in6 any = {.sin6_family = AF_INET6};
  DAT_COMM comm = {AF_INET6, SOCK_STREAM, 0};
  DAT_CSP_HANDLE csp;
  DAT_CSP_PARAM param;
  DAT_EVENT event;
  assert_ok(dat_csp_create(f->ia, &comm, (DAT_IA_ADDRESS_PTR)&any, f->requests, &csp));
  assert_ok(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
  assert_ipv6(param.address_ptr, "fd09::1");
  assert_ok(dat_ep_common_connect(f->active.ep, param.address_ptr, WAIT_US, 0, NULL));
  event = expect_event(f->requests, DAT_CONNECTION_REQUEST_EVENT);
  assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.csp_handle, csp);
  assert_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* ---- IAs of one device ---- */

static void providers_related__same_device_by_two_names(void** state) {
  struct fixture* f = *state;
  /* No other test of this program opens this entry of the guest's dat.conf. */
  const DAT_NAME_PTR name = (DAT_NAME_PTR) "by-ipv6";
  DAT_HA_RELATIONSHIP answer = DAT_HA_UNKNOWN;
  DAT_IA_HANDLE other;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  (void)f;
  assert_error(dat_registry_providers_related((DAT_NAME_PTR)IA_NAME, (DAT_NAME_PTR) "none-such", &answer),
               DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  assert_ok(dat_registry_providers_related((DAT_NAME_PTR)IA_NAME, (DAT_NAME_PTR)IA_NAME, &answer));
  assert_int_equal(answer, DAT_HA_TRUE);
  assert_ok(dat_registry_providers_related((DAT_NAME_PTR)IA_NAME, name, &answer));
  assert_int_equal(answer, DAT_HA_UNKNOWN);
  assert_ok(dat_ia_open(name, 8, &async, &other));
  assert_ok(dat_registry_providers_related((DAT_NAME_PTR)IA_NAME, name, &answer));
  assert_int_equal(answer, DAT_HA_TRUE);
  assert_ok(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
}

/* ---- Attributes without an IA ---- */

static void open_query__attributes_by_name(void** state) {
  struct fixture* f = *state;
  DAT_HANDLE query = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr;
  DAT_PROVIDER_ATTR provider;
  DAT_COUNT count = 0;
  assert_ok(dat_ib_open_query(IA_NAME, &query, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
  assert_string_equal(attr.adapter_name, f->attr.adapter_name);
  assert_int_equal(attr.max_eps, f->attr.max_eps);
  assert_memory_equal(attr.ia_address_ptr, f->attr.ia_address_ptr, sizeof(struct sockaddr_in));
  assert_string_equal(provider.provider_name, IA_NAME);
  for (DAT_COUNT i = 0; i < provider.num_provider_specific_attr; ++i) {
    count += strcmp(provider.provider_specific_attr[i].name, "DAT_IB_DEVICE_NAME") == 0;
  }
  assert_int_equal(count, 1);
  assert_ok(dat_ib_close_query(query));
  assert_error_type(dat_ib_close_query(query), DAT_INVALID_HANDLE);
}

static void open_query__bad_arguments(void** state) {
  struct fixture* f = *state;
  DAT_HANDLE query = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr;
  assert_error(dat_ib_open_query("none-such", &query, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND,
               DAT_NAME_NOT_REGISTERED);
  assert_error_type(dat_ib_open_query(IA_NAME, NULL, 0, NULL, 0, NULL), DAT_INVALID_PARAMETER);
  assert_error_type(dat_ib_open_query(IA_NAME, &query, DAT_IA_FIELD_ALL, NULL, 0, NULL), DAT_INVALID_PARAMETER);
  assert_error_type(dat_ib_open_query(IA_NAME, &query, DAT_IA_FIELD_ALL + 1, &attr, 0, NULL), DAT_INVALID_PARAMETER);
  assert_null(query);
  assert_error_type(dat_ib_close_query(f->ia), DAT_INVALID_HANDLE);
  assert_error_type(dat_ib_close_query(DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
}

/* ---- Counters ---- */

static void counters__of_a_connection(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 300);
  DAT_LMR_TRIPLET to = local(f, HALF, 300);
  DAT_RMR_TRIPLET there = remote(f, HALF, 300);
  DAT_UINT64 all[DCNT_IA_ALL_COUNTERS];
  assert_int_equal(counter(f->ia, DCNT_IA_PZ_CREATE), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_EP_CREATE), 2);
  assert_int_equal(counter(f->ia, DCNT_IA_PSP_CREATE_ANY), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_REQ_TX), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_REQ_RX), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_SP_CR_ACCEPTED), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_SP_CR_REJECTED), 0);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_ACTIVE_EST), 1);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_PASSIVE_EST), 1);
  assert_int_equal(counter(f->active.ep, DCNT_EP_CONNECT), 1);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_CONNECT), 0);
  for (uint64_t i = 0; i < 3; ++i) {
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->passive.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(4), &there, DAT_COMPLETION_DEFAULT_FLAG));
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_SEND), 3);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_SEND_DATA), 900);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_WRITE), 1);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_WRITE_DATA), 300);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_POST_RECV), 3);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV), 3);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV_DATA), 900);
  memset(all, 0xa5, sizeof all);
  assert_ok(dat_ib_query_counters(f->active.ep, DCNT_EP_ALL_COUNTERS, all, 1));
  assert_int_equal(all[DCNT_EP_POST_SEND], 3);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_SEND), 0);
  assert_ok(dat_ib_query_counters(f->ia, DCNT_IA_ALL_COUNTERS, all, 0));
  assert_int_equal(all[DCNT_IA_LMR_CREATE], 1);
  assert_ok(dat_ib_print_counters(f->ia, DCNT_IA_ALL_COUNTERS, 0));
}

static void counters__bad_arguments(void** state) {
  struct fixture* f = *state;
  DAT_UINT64 value;
  assert_error(dat_ib_query_counters(f->ia, DCNT_IA_ALL_COUNTERS + 1, &value, 0), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_error(dat_ib_query_counters(f->ia, -1, &value, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_query_counters(f->ia, 0, NULL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error_type(dat_ib_query_counters(f->pz, 0, &value, 0), DAT_INVALID_HANDLE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(private_data__as_much_as_there_is_room_for),
      ENDS_TEST(private_data__of_a_reject),
      ENDS_TEST(connect__times_out_when_nobody_answers),
      CONNECTED_TEST(dup_connect__to_the_same_service_point),
      cmocka_unit_test_setup_teardown(ipv6__addresses_on_both_sides, set_up_ipv6, tear_down),
      cmocka_unit_test_setup_teardown(ipv6__data_moves, set_up_ipv6, tear_down),
      cmocka_unit_test_setup_teardown(ipv6__common_service_point, set_up_ipv6, tear_down),
      IA_TEST(providers_related__same_device_by_two_names),
      IA_TEST(open_query__attributes_by_name),
      IA_TEST(open_query__bad_arguments),
      CONNECTED_TEST(counters__of_a_connection),
      IA_TEST(counters__bad_arguments),
  };
  return RUN_TESTS(tests);
}

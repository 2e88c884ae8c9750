/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * How connections are made, or fail: between two endpoints of this process, and to a busy server.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

enum { kMaxConnectData = 56, kMaxAcceptData = 196, kMaxRejectData = 144 };

/* The connection manager delivers its whole field: the sent bytes, then zeroes. */
static void check_private_data(const void* data, DAT_COUNT size, unsigned int seed, DAT_COUNT sent) {
  assert_true(size >= sent);
  if (size == 0) return;
  assert_non_null(data);
  assert_true(is_filled(data, (size_t)sent, seed));
  assert_true(is_all((const unsigned char*)data + sent, (size_t)(size - sent), 0));
}

static void one_connection(struct fixture* f, DAT_COUNT connect_size, DAT_COUNT accept_size) {
  unsigned char ours[256];
  unsigned char theirs[256];
  DAT_CR_PARAM request;
  DAT_CR_HANDLE cr;
  DAT_EVENT event;
  fill(ours, sizeof ours, 1);
  fill(theirs, sizeof theirs, 2);
  begin_connect(f, &f->active, ours, connect_size);
  memset(ours, 0, sizeof ours); /* the provider has its own copy */
  cr = take_request(f);
  memset(&request, 0xa5, sizeof request);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
  check_private_data(request.private_data, request.private_data_size, 1, connect_size);
  assert_ok(dat_cr_accept(cr, f->passive.ep, accept_size, theirs));
  memset(theirs, 0, sizeof theirs);
  event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  check_private_data(event.event_data.connect_event_data.private_data,
                     event.event_data.connect_event_data.private_data_size, 2, accept_size);
  assert_ptr_equal(event.event_data.connect_event_data.ep_handle, f->active.ep);
  event = expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ptr_equal(event.event_data.connect_event_data.ep_handle, f->passive.ep);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_CONNECTED);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_CONNECTED);
}

static void connect__private_data_both_ways(void** state) {
  static const DAT_COUNT sizes[][2] = {{0, 0}, {1, 1}, {56, 56}, {0, 56}, {56, 0}, {7, kMaxAcceptData}};
  struct fixture* f = *state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    one_connection(f, sizes[i][0], sizes[i][1]);
    disconnect_ends(f, DAT_CLOSE_ABRUPT_FLAG);
    reset_ends(f);
  }
}

static void connect__private_data_too_long_or_missing(void** state) {
  struct fixture* f = *state;
  unsigned char data[256] = {0};
  DAT_IA_ADDRESS_PTR to = f->attr.ia_address_ptr;
  DAT_CR_HANDLE cr;
  for (DAT_COUNT size = kMaxConnectData + 1; size <= 256; size += 199) {
    assert_error(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, size, data, DAT_QOS_BEST_EFFORT, 0),
                 DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  }
  assert_error(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, -1, data, DAT_QOS_BEST_EFFORT, 0),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  assert_error_type(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, 1, NULL, DAT_QOS_BEST_EFFORT, 0),
                    DAT_INVALID_PARAMETER);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONNECTED);

  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  assert_error(dat_cr_accept(cr, f->passive.ep, kMaxAcceptData + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error_type(dat_cr_accept(cr, f->passive.ep, 1, NULL), DAT_INVALID_PARAMETER);
  ONLY_20(assert_error(dat_cr_reject(cr, kMaxRejectData + 1, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);)
  /* None of these calls has consumed the request. */
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void cr_reject__the_peer_gets_the_data(void** state) {
  static const DAT_COUNT sizes[] = {0 ONLY_20(, 1, 56, kMaxRejectData)};
  struct fixture* f = *state;
  unsigned char data[kMaxRejectData];
  fill(data, sizeof data, 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_EVENT event;
    begin_connect(f, &f->active, NULL, 0);
    assert_ok(dat_cr_reject(take_request(f), sizes[i], sizes[i] ? data : NULL));
    event = expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
    check_private_data(event.event_data.connect_event_data.private_data,
                       event.event_data.connect_event_data.private_data_size, 3, sizes[i]);
    assert_ptr_equal(event.event_data.connect_event_data.ep_handle, f->active.ep);
    assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
    assert_ok(dat_ep_reset(f->active.ep));
  }
  one_connection(f, 0, 0);
}

static void connect__nobody_listens(void** state) {
  struct fixture* f = *state;
  assert_ok(dat_psp_free(f->psp));
  begin_connect(f, &f->active, NULL, 0);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
}

static struct sockaddr_in no_machine(const struct fixture* f) {
  struct sockaddr_in address;
  memcpy(&address, f->attr.ia_address_ptr, sizeof address);
  address.sin_addr.s_addr = htonl((ntohl(address.sin_addr.s_addr) & 0xffffff00U) | 77);
  return address;
}

static void connect__failure_is_logged_when_asked(void** state) {
  struct fixture* f = *state;
  static const char* const types[] = {NULL, "0x3"};
  int i;
  for (i = 0; i < 2; i++) {
    char line[512] = "", port[32];
    FILE* said = tmpfile();
    int saved = dup(STDERR_FILENO);
    assert_non_null(said);
    if (types[i]) setenv("DAPL_DBG_TYPE", types[i], 1);
    assert_ok(dat_psp_free(f->psp));
    dup2(fileno(said), STDERR_FILENO);
    begin_connect(f, &f->active, NULL, 0);
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    dup2(saved, STDERR_FILENO);
    close(saved);
    unsetenv("DAPL_DBG_TYPE");
    rewind(said);
    if (!fgets(line, sizeof line, said)) line[0] = 0;
    fclose(said);
    if (!types[i]) assert_string_equal(line, "");
    snprintf(port, sizeof port, " port %u ", (unsigned)f->port);
    if (types[i]) {
      assert_non_null(strstr(line, getenv("SOFTROCE_ADDRESS")));
      assert_non_null(strstr(line, port));
      /* IBTA 12.6.7.2: invalid service ID. On iWARP the refusal comes from TCP: ECONNREFUSED. */
      assert_non_null(strstr(line, on_iwarp() ? "rdma_connect, status -111" : "RDMA_CM_EVENT_REJECTED, status 8"));
    }
    assert_ok(dat_ep_reset(f->active.ep));
    listen_any(f);
  }
}

static void connect__unreachable_address(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in nowhere = no_machine(f);
  assert_ok(dat_ep_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)&nowhere, f->port, DAT_TIMEOUT_INFINITE, 0, NULL,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_UNREACHABLE);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
}

static void connect__no_route(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in nowhere = no_machine(f);
  DAT_RETURN status;
  nowhere.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, nobody's */
  status = dat_ep_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)&nowhere, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                          DAT_CONNECT_DEFAULT_FLAG);
  /* The kernel may notice at once or later. */
  if (status == DAT_SUCCESS) {
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_UNREACHABLE);
    assert_ok(dat_ep_reset(f->active.ep));
  } else {
    assert_int_equal(status, DAT_CLASS_ERROR | DAT_INVALID_ADDRESS | DAT_INVALID_ADDRESS_UNREACHABLE);
  }
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONNECTED);
  one_connection(f, 0, 0);
}

static void connect__request_dropped_unanswered(void** state) {
  struct fixture* f = *state;
  struct fixture other;
  open_ia(&other, IA_NAME);
  listen_any(&other);
  f->port = other.port;
  begin_connect(f, &f->active, NULL, 0);
  take_request(&other);
  assert_ok(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void connect__time_is_up(void** state) {
  struct fixture* f = *state;
  struct sockaddr_in nowhere = no_machine(f);
  assert_ok(dat_ep_connect(f->active.ep, (DAT_IA_ADDRESS_PTR)&nowhere, f->port, 50000, 0, NULL, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_TIMED_OUT);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
  assert_ok(dat_ep_reset(f->active.ep));

  /* A peer that does not answer in time; its late answer reaches nobody. */
  assert_ok(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, f->port, 300000, 0, NULL, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  DAT_CR_HANDLE cr = take_request(f);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_TIMED_OUT);
  usleep(100000);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_DISCONNECTED);
  reset_ends(f);
  one_connection(f, 0, 0);
}

static void connect__wrong_state(void** state) {
  struct fixture* f = *state;
  DAT_IA_ADDRESS_PTR to = f->attr.ia_address_ptr;
  struct end third;
  DAT_CR_HANDLE cr;
  begin_connect(f, &f->active, NULL, 0);
  assert_error(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, 0), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_ACTCONNPENDING);
  assert_error(dat_ep_reset(f->active.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING);
  assert_ok(dat_cr_accept(take_request(f), f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_error(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, 0), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_CONNECTED);
  assert_error(dat_ep_reset(f->active.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);

  /* If the accepting endpoint has a connection already, the request stays for another. */
  make_end(f, &third, NULL);
  begin_connect(f, &third, NULL, 0);
  cr = take_request(f);
  assert_error(dat_cr_accept(cr, f->passive.ep, 0, NULL), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
  assert_ok(dat_cr_reject(cr, 0, NULL));
  expect_event(third.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);

  disconnect_ends(f, DAT_CLOSE_ABRUPT_FLAG);
  assert_error(dat_ep_connect(f->active.ep, to, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, 0), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_DISCONNECTED);
  assert_ok(dat_ep_reset(f->active.ep));
  assert_error(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONNECTED);
}

static void ep_reset__query_shows_no_connection(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param;
  connect_ends(f);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  assert_non_null(param.remote_ia_address_ptr);
  assert_int_equal(param.remote_port_qual, f->port);
  disconnect_ends(f, DAT_CLOSE_ABRUPT_FLAG);
  reset_ends(f);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  assert_null(param.remote_ia_address_ptr);
  assert_int_equal(param.remote_port_qual, 0);
  assert_int_equal(param.local_port_qual, 0);
}

static void connect__without_a_connection_evd(void** state) {
  struct fixture* f = *state;
  DAT_EP_HANDLE ep;
  assert_ok(dat_ep_create(f->ia, f->pz, f->active.recv, f->active.request, DAT_HANDLE_NULL, NULL, &ep));
  assert_error(dat_ep_connect(ep, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, 0),
               DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_CONNECT);
}

static void psp_free__requests_stay_valid(void** state) {
  struct fixture* f = *state;
  struct end other;
  DAT_CR_PARAM param;
  DAT_EVENT event;
  DAT_CR_HANDLE cr;
  make_end(f, &other, NULL);
  begin_connect(f, &f->active, NULL, 0);
  begin_connect(f, &other, NULL, 0);
  cr = take_request(f);
  usleep(300000); /* for the other request to arrive */
  assert_ok(dat_psp_free(f->psp));
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  event = expect_event(f->requests, DAT_CONNECTION_REQUEST_EVENT);
  assert_memory_equal(event.event_data.cr_arrival_event_data.local_ia_address_ptr, f->attr.ia_address_ptr, 16);
  assert_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
  assert_ok(dat_evd_free(f->requests)); /* nothing refers to it any more */
}

static void psp_create__conn_qual_over_16_bits(void** state) {
  struct fixture* f = *state;
  /* The ports 62063 and 61474, which are above those that the kernel gives to connections. */
  static const DAT_CONN_QUAL qualifiers[] = {1244567, 0x123456789abd34e0ULL};
  DAT_PSP_PARAM param;
  DAT_PSP_HANDLE again;
  for (size_t i = 0; i < 2; ++i) {
    assert_ok(dat_psp_free(f->psp));
    f->port = qualifiers[i];
    assert_ok(dat_psp_create(f->ia, f->port, f->requests, DAT_PSP_CONSUMER_FLAG, &f->psp));
    assert_ok(dat_psp_query(f->psp, DAT_PSP_FIELD_ALL, &param));
    assert_int_equal(param.conn_qual, f->port);
    assert_ptr_equal(param.evd_handle, f->requests);
    assert_ptr_equal(param.ia_handle, f->ia);
    assert_error(dat_psp_create(f->ia, f->port, f->requests, DAT_PSP_CONSUMER_FLAG, &again), DAT_CONN_QUAL_IN_USE,
                 DAT_NO_SUBTYPE);
    one_connection(f, 5, 6);
    disconnect_ends(f, DAT_CLOSE_ABRUPT_FLAG);
    reset_ends(f);
  }
}

static void cr_query__who_asks(void** state) {
  struct fixture* f = *state;
  DAT_CR_PARAM request;
  DAT_EP_PARAM ep;
  DAT_CR_HANDLE cr;
  begin_connect(f, &f->active, "x", 1);
  cr = take_request(f);
  memset(&request, 0xa5, sizeof request);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
  assert_int_equal(((struct sockaddr_in*)request.remote_ia_address_ptr)->sin_family, AF_INET);
  assert_int_equal(((struct sockaddr_in*)request.remote_ia_address_ptr)->sin_addr.s_addr,
                   ((struct sockaddr_in*)f->attr.ia_address_ptr)->sin_addr.s_addr);
  assert_int_not_equal(request.remote_port_qual, 0);
  assert_ptr_equal(request.local_ep_handle, DAT_HANDLE_NULL);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &ep));
  assert_int_equal(ep.local_port_qual, request.remote_port_qual);
  assert_int_equal(ep.remote_port_qual, f->port);
  assert_int_equal(ep.ep_state, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

/* The other process: writes its port to a pipe, and refuses this number of requests. */
enum { kMany = 200 };

static void refuse_many(int out) {
  struct fixture f;
  open_ia(&f, IA_NAME);
  listen_any(&f);
  assert_ok(dat_evd_resize(f.requests, kMany));
  if (write(out, &f.port, sizeof f.port) < 0) _exit(1);
  for (int i = 0; i < kMany; ++i) assert_ok(dat_cr_reject(take_request(&f), 0, NULL));
  assert_ok(dat_ia_close(f.ia, DAT_CLOSE_ABRUPT_FLAG));
  _exit(0);
}

/* Returns the time that a busy server took to answer many requests. */
static double connect_many(void) {
  struct fixture* f;
  void* own = NULL;
  int fds[2];
  int status = -1;
  pid_t child;
  struct end ends;
  DAT_EP_HANDLE eps[kMany];
  struct timespec begun, ended;
  assert_int_equal(pipe(fds), 0);
  child = fork();
  if (child == 0) refuse_many(fds[1]);
  set_up_ia(&own);
  f = own;
  make_end(f, &ends, NULL);
  assert_ok(dat_evd_resize(ends.connect, kMany));
  for (int i = 0; i < kMany; ++i) {
    assert_ok(dat_ep_create(f->ia, f->pz, ends.recv, ends.request, ends.connect, NULL, &eps[i]));
  }
  assert_int_equal(read(fds[0], &f->port, sizeof f->port), sizeof f->port);
  kill(child, SIGSTOP);
  for (int i = 0; i < kMany; ++i) {
    assert_ok(dat_ep_connect(eps[i], f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG));
  }
  usleep(700000); /* until all requests have arrived */
  kill(child, SIGCONT);
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int i = 0; i < kMany; ++i) expect_event(ends.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  const double took = (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
  print_message("a busy server has answered %d requests after %.2f s\n", kMany, took);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  close(fds[0]);
  close(fds[1]);
  tear_down(&own);
  return took;
}

/* A request that finds no room at a busy server is sent again only after four seconds. */
static void connect__many_at_once_to_a_busy_server(void** state) {
  double took = 1e9;
  (void)state;
  SKIP_ON_IWARP(); /* siw runs out of queues, and TCP keeps requests that find no room */
  /* The best of several times, so that other programs on the machine do not matter. */
  for (int i = 0; i < 3 && took >= 3; ++i) took = connect_many();
  assert_true(took < 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(connect__many_at_once_to_a_busy_server),
      ENDS_TEST(connect__private_data_both_ways),
      ENDS_TEST(connect__private_data_too_long_or_missing),
      ENDS_TEST(cr_reject__the_peer_gets_the_data),
      ENDS_TEST(connect__nobody_listens),
      ENDS_TEST(connect__failure_is_logged_when_asked),
      ENDS_TEST(connect__unreachable_address),
      ENDS_TEST(connect__no_route),
      ENDS_TEST(connect__request_dropped_unanswered),
      ENDS_TEST(connect__time_is_up),
      ENDS_TEST(connect__wrong_state),
      ENDS_TEST(ep_reset__query_shows_no_connection),
      ENDS_TEST(connect__without_a_connection_evd),
      ENDS_TEST(psp_free__requests_stay_valid),
      ENDS_TEST(psp_create__conn_qual_over_16_bits),
      ENDS_TEST(cr_query__who_asks),
  };
  return RUN_TESTS(tests);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* EVDs with traffic: resizing, the events that wake a waiter and those that do not, overflow, streams. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static DAT_EP_ATTR attr_of(struct fixture* f) {
  DAT_EP_HANDLE ep;
  DAT_EP_PARAM param;
  assert_ok(dat_ep_create(f->ia, f->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL, &ep));
  assert_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
  assert_ok(dat_ep_free(ep));
  return param.ep_attr;
}

static void post_recv(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_send(struct fixture* f, uint64_t number, DAT_COMPLETION_FLAGS flags) {
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(number), flags));
}

/* The time of a wait of limit_us during which at least this many events arrive; the last event is returned. */
static int64_t timed_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT limit_us, DAT_EVENT* event) {
  const int64_t start = now_us();
  DAT_COUNT more;
  assert_ok(dat_evd_wait(evd, limit_us, 1, event, &more));
  return now_us() - start;
}

static void evd_resize__while_traffic_flows(void** state) {
  struct fixture* f = *state;
  static const DAT_COUNT sizes[] = {64, 1000, 16, 3000, 17, 64, 128};
  DAT_EVD_PARAM param;
  uint64_t next = 0;
  for (uint64_t sent = 0; sent < 700; ++sent) {
    post_recv(f, sent);
    post_send(f, sent, DAT_COMPLETION_SUPPRESS_FLAG);
    if (sent % 10 == 9) {
      const DAT_COUNT size = sizes[sent / 10 % 7];
      if (on_iwarp() && size > 64) { /* software iWARP cannot make room */
        assert_error(dat_evd_resize(f->passive.recv, size), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
        continue;
      }
      assert_ok(dat_evd_resize(f->passive.recv, size));
      assert_ok(dat_evd_query(f->passive.recv, DAT_EVD_FIELD_ALL, &param));
      assert_int_equal(param.evd_qlen, size);
    }
    if (sent % 8 == 7) {
      while (next <= sent) {
        expect_dto(f->passive.recv, next, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
        ++next;
      }
    }
  }
}

static void evd_resize__keeps_what_waits_and_refuses_less(void** state) {
  struct fixture* f = *state;
  DAT_EVD_PARAM param;
  DAT_EVENT event;
  DAT_COUNT more;
  for (uint64_t i = 0; i < 8; ++i) {
    post_recv(f, i);
    post_send(f, i, DAT_COMPLETION_SUPPRESS_FLAG);
  }
  assert_ok(dat_evd_wait(f->passive.recv, WAIT_US, 8, &event, &more));
  assert_int_equal(more, 7);
  assert_error_type(dat_evd_resize(f->passive.recv, 6), DAT_INVALID_STATE);
  assert_ok(dat_evd_query(f->passive.recv, DAT_EVD_FIELD_ALL, &param));
  assert_int_equal(param.evd_qlen, 64);
  assert_ok(dat_evd_resize(f->passive.recv, 7));
  if (on_iwarp()) {
    assert_error(dat_evd_resize(f->passive.recv, 4000), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
  } else {
    assert_ok(dat_evd_resize(f->passive.recv, 4000));
  }
  for (uint64_t i = 1; i < 8; ++i) expect_dto(f->passive.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  assert_error(dat_evd_resize(f->passive.recv, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_evd_resize(f->passive.recv, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error_type(dat_evd_resize(f->passive.recv, 0x7fffffff), DAT_INSUFFICIENT_RESOURCES);
}

static void evd_resize__of_software_events(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE evd;
  DAT_EVENT event;
  assert_ok(dat_evd_create(f->ia, 2, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
  memset(&event, 0, sizeof event);
  event.event_number = DAT_SOFTWARE_EVENT;
  for (uintptr_t i = 0; i < 2; ++i) {
    event.event_data.software_event_data.pointer = (void*)i;
    assert_ok(dat_evd_post_se(evd, &event));
  }
  assert_error(dat_evd_post_se(evd, &event), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
  assert_error_type(dat_evd_resize(evd, 1), DAT_INVALID_STATE);
  assert_ok(dat_evd_resize(evd, 5));
  for (uintptr_t i = 2; i < 5; ++i) {
    event.event_data.software_event_data.pointer = (void*)i;
    assert_ok(dat_evd_post_se(evd, &event));
  }
  assert_error(dat_evd_post_se(evd, &event), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
  for (uintptr_t i = 0; i < 5; ++i) {
    event = expect_event(evd, DAT_SOFTWARE_EVENT);
    assert_ptr_equal(event.event_data.software_event_data.pointer, (void*)i);
  }
}

static void connect_with(struct fixture* f, DAT_COMPLETION_FLAGS request, DAT_COMPLETION_FLAGS recv) {
  DAT_EP_ATTR attr = attr_of(f);
  attr.request_completion_flags = request;
  make_end(f, &f->active, &attr);
  attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attr.recv_completion_flags = recv;
  make_end(f, &f->passive, &attr);
  listen_any(f);
  connect_ends(f);
}

/* For a test of two threads. */
static void reopen_thread_safe(struct fixture* f) {
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  munmap(f->memory, MEMORY_SIZE);
  memset(f, 0, sizeof *f);
  assert_ok(dat_ia_openv((DAT_NAME_PTR)IA_NAME, 8, &f->async, &f->ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &f->attr, DAT_PROVIDER_FIELD_ALL, &f->provider));
  assert_ok(dat_pz_create(f->ia, &f->pz));
  register_memory(f);
}

/* Posts a while after the wait has begun. */
static void* send_later(void* fixture) {
  struct fixture* f = fixture;
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  usleep(SOON_US / 2);
  return (void*)(uintptr_t)dat_ep_post_send(f->active.ep, 1, &from, cookie(1), DAT_COMPLETION_UNSIGNALLED_FLAG);
}

static void unsignalled__is_delivered_and_wakes_nobody(void** state) {
  struct fixture* f = *state;
  const DAT_TIMEOUT limit_us = 10 * SOON_US;
  DAT_EVENT event;
  pthread_t later;
  void* status = NULL;
  reopen_thread_safe(f);
  connect_with(f, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
  post_recv(f, 1);
  assert_int_equal(pthread_create(&later, NULL, send_later, f), 0);
  /* The wait's end delivers it, and nothing before. */
  assert_true(timed_wait(f->active.request, limit_us, &event) >= limit_us);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
  pthread_join(later, &status);
  assert_null(status);
  expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  post_recv(f, 2);
  post_send(f, 2, DAT_COMPLETION_DEFAULT_FLAG);
  assert_true(timed_wait(f->active.request, WAIT_US, &event) < WAIT_US / 2);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
}

static void unsignalled__triggers_no_cno(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno;
  DAT_EVD_HANDLE found;
  connect_with(f, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
  assert_ok(dat_cno_create(f->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
  assert_ok(dat_evd_modify_cno(f->active.request, cno));
  post_recv(f, 1);
  post_recv(f, 2);
  post_send(f, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
  assert_error(dat_cno_wait(cno, SOON_US, &found), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  post_send(f, 2, DAT_COMPLETION_DEFAULT_FLAG);
  assert_ok(dat_cno_wait(cno, WAIT_US, &found));
  assert_ptr_equal(found, f->active.request);
  expect_dto(f->active.request, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  expect_dto(f->active.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
}

static void unsignalled__only_where_the_ep_says_so(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, 8);
  const DAT_RMR_TRIPLET to = remote(f, HALF, 8);
  const DAT_COMPLETION_FLAGS flag = DAT_COMPLETION_UNSIGNALLED_FLAG;
  assert_error(dat_ep_post_send(f->active.ep, 1, &segment, cookie(1), flag), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  assert_error(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(1), flag), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  assert_error(dat_ep_post_rdma_write(f->active.ep, 1, &segment, cookie(1), &to, flag), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
  assert_error(dat_ep_post_rdma_read(f->active.ep, 1, &segment, cookie(1), &to, flag), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
}

static void solicited_wait__only_solicited_sends_wake(void** state) {
  struct fixture* f = *state;
  DAT_EVENT event;
  DAT_COUNT more;
  connect_with(f, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  for (uint64_t i = 0; i < 4; ++i) post_recv(f, i);
  /*
   * The thread sleeps before the first message arrives: at first there is no event, and the test's other thread acts as
   * the device.
   */
  assert_error(dat_evd_wait(f->passive.recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
  post_send(f, 0, DAT_COMPLETION_SUPPRESS_FLAG);
  post_send(f, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_SUPPRESS_FLAG);
  assert_true(timed_wait(f->passive.recv, WAIT_US, &event) < WAIT_US / 2);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
  expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
}

static void solicited_wait__cno(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno;
  DAT_EVD_HANDLE found;
  connect_with(f, DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  assert_ok(dat_cno_create(f->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  for (uint64_t i = 0; i < 2; ++i) post_recv(f, i);
  post_send(f, 0, DAT_COMPLETION_SUPPRESS_FLAG);
  if (on_iwarp()) { /* siw cannot distinguish them: every Send wakes */
    assert_ok(dat_cno_wait(cno, WAIT_US, &found));
    assert_ptr_equal(found, f->passive.recv);
    expect_dto(f->passive.recv, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  } else {
    assert_error(dat_cno_wait(cno, SOON_US, &found), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  }
  post_send(f, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_SUPPRESS_FLAG);
  assert_ok(dat_cno_wait(cno, WAIT_US, &found));
  assert_ptr_equal(found, f->passive.recv);
  if (!on_iwarp()) expect_dto(f->passive.recv, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
}

static void modify_recv_flags(DAT_EP_HANDLE ep, DAT_COMPLETION_FLAGS flags) {
  DAT_EP_PARAM param;
  memset(&param, 0, sizeof param);
  param.ep_attr.recv_completion_flags = flags;
  assert_ok(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param));
}

static void ep_create__all_eps_of_an_evd_notify_alike(void** state) {
  struct fixture* f = *state;
  DAT_EP_ATTR attr = attr_of(f);
  DAT_EVD_HANDLE evd;
  DAT_EP_HANDLE ep;
  DAT_EP_HANDLE other;
  DAT_EP_PARAM param;
  memset(&param, 0, sizeof param);
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
  attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  assert_ok(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep));
  attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  assert_error(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &other), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
  assert_ok(dat_ep_free(ep));
  assert_ok(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep));
  attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  assert_error(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &other), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EVD_CONFIG_NOTIFY);
  modify_recv_flags(ep, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  assert_error(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &other), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
  modify_recv_flags(ep, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  assert_ok(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &other));
  param.ep_attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  assert_error(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD);
  assert_ok(dat_ep_free(other));
  assert_ok(dat_ep_free(ep));
  attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)0x100;
  assert_error(dat_ep_create(f->ia, f->pz, evd, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &other), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
}

static void overflow__is_told_with_the_evd(void** state) {
  struct fixture* f = *state;
  struct end ends[2];
  DAT_EVENT event;
  assert_ok(dat_evd_create(f->ia, 1, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &f->requests));
  assert_ok(dat_psp_create_any(f->ia, &f->port, f->requests, DAT_PSP_CONSUMER_FLAG, &f->psp));
  for (int i = 0; i < 2; ++i) {
    make_end(f, &ends[i], NULL);
    begin_connect(f, &ends[i], NULL, 0);
  }
  event = expect_event(f->async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
  assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, f->requests);
  assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
}

static void evd_create__every_combination_of_streams(void** state) {
  struct fixture* f = *state;
  static const int bits[] = {DAT_EVD_SOFTWARE_FLAG,   DAT_EVD_CR_FLAG,       DAT_EVD_DTO_FLAG,
                             DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG};
  DAT_EVD_PARAM param;
  DAT_EVD_HANDLE evd;
  for (unsigned int set = 1; set < 64; ++set) {
    int flags = 0;
    for (unsigned int i = 0; i < 6; ++i) flags |= set >> i & 1 ? bits[i] : 0;
    assert_ok(dat_evd_create(f->ia, 4, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)flags, &evd));
    assert_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    assert_int_equal(param.evd_flags, flags);
    assert_ok(dat_evd_free(evd));
  }
}

static void evd__all_streams_of_an_ep_on_one(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE evd;
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  int established = 0;
  int dtos = 0;
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
  assert_ok(dat_ep_create(f->ia, f->pz, evd, evd, evd, NULL, &f->active.ep));
  assert_ok(dat_ep_create(f->ia, f->pz, evd, evd, evd, NULL, &f->passive.ep));
  assert_ok(dat_psp_create_any(f->ia, &f->port, evd, DAT_PSP_CONSUMER_FLAG, &f->psp));
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  begin_connect(f, &f->active, NULL, 0);
  while (dtos < 2) {
    DAT_EVENT event;
    DAT_COUNT more;
    assert_ok(dat_evd_wait(evd, WAIT_US, 1, &event, &more));
    if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
      assert_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, f->passive.ep, 0, NULL));
    } else if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
      if (++established == 2) {
        assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
      }
    } else {
      assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
      ++dtos;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(evd_resize__while_traffic_flows),
      CONNECTED_TEST(evd_resize__keeps_what_waits_and_refuses_less),
      IA_TEST(evd_resize__of_software_events),
      IA_TEST(unsignalled__is_delivered_and_wakes_nobody),
      IA_TEST(unsignalled__triggers_no_cno),
      CONNECTED_TEST(unsignalled__only_where_the_ep_says_so),
      IA_TEST(solicited_wait__only_solicited_sends_wake),
      IA_TEST(solicited_wait__cno),
      IA_TEST(ep_create__all_eps_of_an_evd_notify_alike),
      IA_TEST(overflow__is_told_with_the_evd),
      IA_TEST(evd_create__every_combination_of_streams),
      IA_TEST(evd__all_streams_of_an_ep_on_one),
  };
  return RUN_TESTS(tests);
}

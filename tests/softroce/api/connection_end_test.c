/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Requests and endpoints outside of a connection: before it, at its end, after it, and when the peer is killed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

static void one_message(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET source = local(f, 0, 1000);
  DAT_LMR_TRIPLET sink = local(f, HALF, 1000);
  fill(f->memory, 1000, (unsigned int)number);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(number + 1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->passive.recv, number + 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_dto(f->active.request, number, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF, 1000, (unsigned int)number));
}

static void post_recv__before_the_connection(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 500);
  DAT_LMR_TRIPLET sinks[2] = {local(f, HALF, 500), local(f, HALF + 1000, 500)};
  DAT_CR_HANDLE cr;
  fill(f->memory, 500, 4);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &sinks[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sinks[1], cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  /* The same while the connection is being made. */
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &sinks[0], cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_nothing(f->active.recv);
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(10), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->passive.ep, 1, &source, cookie(20), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->passive.ep, 1, &source, cookie(21), DAT_COMPLETION_DEFAULT_FLAG));
  assert_int_equal(expect_dto(f->passive.recv, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).transfered_length, 500);
  expect_dto(f->active.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_dto(f->active.recv, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF, 500, 4));
  assert_true(is_filled(f->memory + HALF + 1000, 500, 4));
}

static void post_request__before_the_connection(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 500);
  assert_error(dat_ep_post_send(f->active.ep, 1, &source, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONNECTED);
}

static void post__on_a_disconnected_ep_is_flushed(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, 500);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 500);
  const uint64_t big = 0xfedcba9876543210ULL;
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(big), DAT_COMPLETION_DEFAULT_FLAG));
  disconnect_ends(f, DAT_CLOSE_ABRUPT_FLAG);
  expect_dto(f->active.recv, big, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
  for (uint64_t i = 0; i < 40; i += 4) {
    assert_ok(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(big + i), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &segment, cookie(big + i + 1), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &segment, cookie(i + 2), &there, DAT_COMPLETION_SUPPRESS_FLAG));
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &segment, cookie(i + 3), &there, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->active.recv, big + i, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
    expect_dto(f->active.request, big + i + 1, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED);
    expect_dto(f->active.request, i + 2, DAT_DTO_RDMA_WRITE, DAT_DTO_ERR_FLUSHED);
    expect_dto(f->active.request, i + 3, DAT_DTO_RDMA_READ, DAT_DTO_ERR_FLUSHED);
  }
  /* A flush must not be reported as a broken connection. */
  expect_nothing(f->active.connect);
  expect_nothing(f->async);
}

static void disconnect__graceful_and_abrupt(void** state) {
  struct fixture* f = *state;
  const DAT_CLOSE_FLAGS flags[] = {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG};
  for (size_t i = 0; i < 2; ++i) {
    connect_ends(f);
    one_message(f, i * 100);
    disconnect_ends(f, flags[i]);
    assert_ok(dat_ep_disconnect(f->active.ep, flags[i])); /* a second call is not an error, and makes no event */
    expect_nothing(f->active.connect);
    expect_nothing(f->passive.connect);
    reset_ends(f);
    /* Disconnects from the other side. */
    connect_ends(f);
    assert_ok(dat_ep_disconnect(f->passive.ep, flags[i]));
    expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    reset_ends(f);
    /* Disconnects from both sides at once. */
    connect_ends(f);
    assert_ok(dat_ep_disconnect(f->passive.ep, flags[i]));
    assert_ok(dat_ep_disconnect(f->active.ep, flags[i]));
    expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    reset_ends(f);
  }
  assert_error(dat_ep_disconnect(f->active.ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void disconnect__graceful_completes_what_is_posted(void** state) {
  struct fixture* f = *state;
  enum { kWrites = 12 };
  const size_t size = 100000;
  connect_ends(f);
  memset(f->memory + HALF, 0, kWrites * size);
  sync_for_write(f, HALF, kWrites * size);
  for (unsigned int i = 0; i < kWrites; ++i) {
    DAT_LMR_TRIPLET source = local(f, i * size, size);
    const DAT_RMR_TRIPLET to = remote(f, HALF + i * size, size);
    fill(f->memory + i * size, size, i);
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(i), &to, DAT_COMPLETION_DEFAULT_FLAG));
  }
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  for (unsigned int i = 0; i < kWrites; ++i) {
    expect_dto(f->active.request, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  }
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  /* On iWARP the last bytes may arrive after the Writes' completions, but not after the end of the stream. */
  for (unsigned int i = 0; i < kWrites; ++i) {
    sync_for_write(f, HALF + i * size, size);
    assert_true(is_filled(f->memory + HALF + i * size, size, i));
  }
}

static void disconnect__before_the_peer_answers(void** state) {
  struct fixture* f = *state;
  DAT_CR_HANDLE cr;
  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  usleep(100000);
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

static void reset__and_reconnect_20_times(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET left = local(f, 0, 10);
  for (uint64_t i = 0; i < 20; ++i) {
    connect_ends(f);
    one_message(f, i * 10);
    /* A receive that is never used, and that makes no event after the reset. */
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &left, cookie(999), DAT_COMPLETION_DEFAULT_FLAG));
    disconnect_ends(f, i % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
    reset_ends(f);
  }
  expect_nothing(f->passive.recv);
  assert_ok(dat_ep_reset(f->active.ep)); /* UNCONNECTED already */
}

static void evd_overflow__the_async_event_names_the_evd(void** state) {
  struct fixture* f = *state;
  struct end ends[2];
  DAT_EVD_HANDLE narrow;
  DAT_EVENT event;
  for (size_t i = 0; i < 2; ++i) make_end(f, &ends[i], NULL);
  assert_ok(dat_psp_free(f->psp));
  assert_ok(dat_evd_create(f->ia, 1, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &narrow));
  assert_ok(dat_psp_create_any(f->ia, &f->port, narrow, DAT_PSP_CONSUMER_FLAG, &f->psp));
  begin_connect(f, &ends[0], NULL, 0);
  usleep(200000);
  begin_connect(f, &ends[1], NULL, 0);
  event = expect_event(f->async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
  assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, narrow);
  /* The request that found no room is refused and does not hang. */
  expect_event(ends[1].connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  expect_event(narrow, DAT_CONNECTION_REQUEST_EVENT);
}

static void ep_free__connected_and_with_work_posted(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, 100);
  connect_ends(f);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  free_end(&f->active);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  free_end(&f->passive);
}

/* The other process: writes its port to a pipe, accepts one connection, and waits for its end. */
static void serve_until_killed(int out) {
  struct fixture f;
  DAT_RMR_TRIPLET window;
  open_ia(&f, IA_NAME);
  register_memory(&f);
  make_end(&f, &f.passive, NULL);
  listen_any(&f);
  window = remote(&f, 0, MEMORY_SIZE);
  if (write(out, &f.port, sizeof f.port) < 0 || write(out, &window, sizeof window) < 0) _exit(1);
  assert_ok(dat_cr_accept(take_request(&f), f.passive.ep, 0, NULL));
  expect_event(f.passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  for (;;) pause();
}

static void peer_killed__in_the_middle_of_transfers(void** state) {
  struct fixture* f;
  void* own = NULL;
  int fds[2];
  pid_t child;
  DAT_RMR_TRIPLET window;
  DAT_LMR_TRIPLET source;
  DAT_EVENT event;
  DAT_COUNT more;
  uint64_t posted = 0, completed = 0, flushed = 0;
  (void)state;
  assert_int_equal(pipe(fds), 0);
  child = fork();
  if (child == 0) serve_until_killed(fds[1]);
  set_up_ia(&own);
  f = own;
  make_end(f, &f->active, NULL);
  assert_int_equal(read(fds[0], &f->port, sizeof f->port), sizeof f->port);
  assert_int_equal(read(fds[0], &window, sizeof window), sizeof window);
  begin_connect(f, &f->active, NULL, 0);
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  source = local(f, 0, 1000000);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &source, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  for (bool killed = false; !flushed;) {
    while (posted < completed + 8) {
      const DAT_RETURN status =
          dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(posted), &window, DAT_COMPLETION_DEFAULT_FLAG);
      assert_int_equal(status, DAT_SUCCESS);
      ++posted;
    }
    if (completed >= 8 && !killed) {
      kill(child, SIGKILL);
      killed = true;
    }
    assert_ok(dat_evd_wait(f->active.request, WAIT_US, 1, &event, &more));
    assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, completed);
    ONLY_20(assert_int_equal(event.event_data.dto_completion_event_data.operation, DAT_DTO_RDMA_WRITE);)
    if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) ++flushed;
    ++completed;
  }
  while (completed < posted) {
    assert_ok(dat_evd_wait(f->active.request, WAIT_US, 1, &event, &more));
    assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, completed++);
    assert_int_not_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  }
  expect_dto(f->active.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
  assert_ok(dat_evd_wait(f->active.connect, WAIT_US, 1, &event, &more));
  assert_true(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
              event.event_number == DAT_CONNECTION_EVENT_BROKEN);
  assert_int_equal(more, 0);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
  assert_int_equal(waitpid(child, NULL, 0), child);
  close(fds[0]);
  close(fds[1]);

  /* The remaining objects can be freed one by one. */
  free_end(&f->active);
  assert_ok(dat_lmr_free(f->lmr));
  assert_ok(dat_pz_free(f->pz));
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG));
  f->ia = DAT_HANDLE_NULL;
  tear_down(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(peer_killed__in_the_middle_of_transfers), /* before the parent uses any device */
      ENDS_TEST(post_recv__before_the_connection),
      ENDS_TEST(post_request__before_the_connection),
      CONNECTED_TEST(post__on_a_disconnected_ep_is_flushed),
      ENDS_TEST(disconnect__graceful_and_abrupt),
      ENDS_TEST(disconnect__graceful_completes_what_is_posted),
      ENDS_TEST(disconnect__before_the_peer_answers),
      ENDS_TEST(reset__and_reconnect_20_times),
      ENDS_TEST(evd_overflow__the_async_event_names_the_evd),
      ENDS_TEST(ep_free__connected_and_with_work_posted),
  };
  return RUN_TESTS(tests);
}

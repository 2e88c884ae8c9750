/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A surviving process, as server and as client, whose peers are killed one after the other: before the request is
 * answered, during transfers, during the disconnect, or at any time. It gets an event for each death, and in the end no
 * descriptor, thread, memory or queue pair is left. DAPPLE_KILL_CYCLES is the number of kills.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/softroce/api/kill_cycles.h"
#include "tests/softroce/api/resources.h"

#define POLL_US 5000U
#define QUIET_US 500000U
#define CYCLE_SECONDS 300       /* an emulated machine's clock may run many times too fast */
#define WARM_UP 8               /* cycles before the first measurement: caches fill, arenas grow */
#define HEAP_ALLOWANCE 65536U   /* bytes over all cycles; leaking one object in each cycle would exceed it */
#define SENDER_ALLOWANCE 81920U /* two threads may first send at once after the warm-up; each keeps a buffer */
#ifdef __SANITIZE_THREAD__
#define RSS_ALLOWANCE 33554432U /* bytes; the shadow memory grows by 10 MiB at times */
#else
#define RSS_ALLOWANCE 2097152U /* bytes */
#endif
#define MAX_EPS 8

extern char** environ;

struct survivor {
  struct fixture f;
  DAT_EVD_HANDLE evd;
  DAT_EP_HANDLE eps[MAX_EPS]; /* in the present cycle */
  int ep_count;
  struct window peers[MAX_EPS]; /* where the peers allow writes */
  int established;
  int ends; /* connections that have ended */
  int requests;

  bool serves;
  enum phase phase;
  uint64_t random;
  pid_t peer;
  int from_peer; /* pipe */
  int64_t start_us;
  int64_t kill_at_us;
  uint32_t life_us; /* how long the last peer took to be connected */
  bool killed;
};

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint32_t next_random(struct survivor* s, uint32_t below) {
  s->random = s->random * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(s->random >> 33) % below;
}

static void start_peer(struct survivor* s) {
  char phase[16], port[24];
  char* arguments[] = {
      (char*)"kill_cycles", (char*)"peer", (char*)(s->serves ? "client" : "server"), phase, port, NULL};
  posix_spawn_file_actions_t actions;
  int fds[2];
  snprintf(phase, sizeof phase, "%d", s->phase);
  snprintf(port, sizeof port, "%llu", (unsigned long long)s->f.port);
  assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  assert_int_equal(posix_spawn(&s->peer, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  s->from_peer = fds[0];
}

static void kill_peer(struct survivor* s) {
  if (s->killed) return;
  kill(s->peer, SIGKILL);
  s->killed = true;
}

static DAT_EP_HANDLE add_ep(struct survivor* s) {
  assert_true(s->ep_count < MAX_EPS);
  return s->eps[s->ep_count++] = make_common_ep(&s->f, s->evd);
}

static int index_of(const struct survivor* s, DAT_EP_HANDLE ep) {
  for (int i = 0; i < s->ep_count; ++i) {
    if (s->eps[i] == ep) return i;
  }
  fail_msg("an event of an unknown EP");
  return -1;
}

static void on_message(struct survivor* s, const struct message* message) {
  struct window mine = window_of(&s->f);
  switch (message->at) {
    case 'l':
      assert_ok(dat_ep_connect(add_ep(s), s->f.attr.ia_address_ptr, message->port, WAIT_US, sizeof mine, &mine,
                               DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
      break;
    case 'r':
      kill_peer(s);
      break;
    case 'e':
      s->life_us = (uint32_t)(now_us() - s->start_us);
      if (s->phase == kTransfer) s->kill_at_us = now_us() + next_random(s, 5000);
      break;
    case 'd':
      s->kill_at_us = now_us() + next_random(s, 2000);
      break;
    default:
      break;
  }
}

static void on_request(struct survivor* s, DAT_CR_HANDLE cr) {
  struct window mine = window_of(&s->f);
  DAT_CR_PARAM param;
  DAT_EP_HANDLE ep;
  ++s->requests;
  if (s->phase == kBeforeAccept) {
    kill_peer(s);
    usleep(next_random(s, 3000)); /* the event may come before or after the answer */
    if (next_random(s, 4) == 0) {
      assert_ok(dat_cr_reject(cr, 0, NULL));
      return;
    }
  }
  ep = add_ep(s);
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  assert_int_equal(param.private_data_size >= (DAT_COUNT)sizeof mine, 1);
  memcpy(&s->peers[s->ep_count - 1], param.private_data, sizeof mine);
  assert_ok(dat_cr_accept(cr, ep, sizeof mine, &mine));
}

static void on_event(struct survivor* s, const DAT_EVENT* event) {
  const DAT_CONNECTION_EVENT_DATA* connection = &event->event_data.connect_event_data;
  const DAT_DTO_COMPLETION_EVENT_DATA* dto = &event->event_data.dto_completion_event_data;
  int i;
  switch (event->event_number) {
    case DAT_CONNECTION_REQUEST_EVENT:
      on_request(s, event->event_data.cr_arrival_event_data.cr_handle);
      break;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      i = index_of(s, connection->ep_handle);
      ++s->established;
      if (!s->serves) memcpy(&s->peers[i], connection->private_data, sizeof s->peers[i]);
      for (int k = 0; k < 4; ++k) write_to(&s->f, s->eps[i], &s->peers[i]);
      if (s->phase == kDisconnect && next_random(s, 2)) {
        dat_ep_disconnect(s->eps[i], next_random(s, 2) ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
        s->kill_at_us = now_us() + next_random(s, 2000);
      }
      break;
    case DAT_DTO_COMPLETION_EVENT:
      i = index_of(s, dto->ep_handle);
      if (dto->status == DAT_DTO_SUCCESS) write_to(&s->f, s->eps[i], &s->peers[i]);
      break;
    default: /* every second event is the end of a connection */
      index_of(s, connection->ep_handle);
      ++s->ends;
      break;
  }
}

/* Handles the peer's messages and its end; false when no more will come. */
static bool hear_peer(struct survivor* s) {
  struct message message;
  struct pollfd pipe_end = {s->from_peer, POLLIN, 0};
  if (s->kill_at_us && now_us() >= s->kill_at_us) kill_peer(s);
  if (poll(&pipe_end, 1, 0) <= 0) return true;
  if (read(s->from_peer, &message, sizeof message) != sizeof message) return false;
  if (!s->killed) on_message(s, &message);
  return true;
}

static void one_cycle(struct survivor* s, unsigned int number) {
  const int64_t give_up_us = now_us() + CYCLE_SECONDS * 1000000LL;
  int64_t quiet_since_us = 0;
  bool alive = true;
  s->random = number * 2654435761U + (s->serves ? 1 : 2);
  s->phase = (enum phase)(number % kPhases);
  s->ep_count = s->established = s->ends = s->requests = 0;
  s->killed = false;
  s->kill_at_us = 0;
  s->start_us = now_us();
  start_peer(s);
  if (s->phase == kAtOnce) s->kill_at_us = s->start_us + next_random(s, 100000 + 2 * s->life_us);
  /* A request of a killed peer may arrive a little later. */
  while (alive || s->ends < s->ep_count || now_us() < quiet_since_us + 20000) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_RETURN status;
    if (now_us() > give_up_us) {
      fail_msg("cycle %u, phase %d: %d of %d connections have ended, %d had begun; the peer %s", number, s->phase,
               s->ends, s->ep_count, s->established, alive ? "lives" : "is dead");
    }
    if (alive && !(alive = hear_peer(s))) {
      quiet_since_us = now_us();
      assert_int_equal(waitpid(s->peer, NULL, 0), s->peer);
      assert_true(s->killed);
    }
    status = dat_evd_wait(s->evd, POLL_US, 1, &event, &more);
    if (status == DAT_SUCCESS) {
      on_event(s, &event);
    } else {
      assert_int_equal(DAT_GET_TYPE(status), DAT_TIMEOUT_EXPIRED);
    }
  }
  close(s->from_peer);
  if (s->phase == kBeforeAccept && s->serves) assert_int_equal(s->requests, 1);
  if (s->phase > kBeforeAccept) assert_int_equal(s->ep_count, 1);
  for (int i = 0; i < s->ep_count; ++i) {
    assert_int_equal(state_of(s->eps[i]), DAT_EP_STATE_DISCONNECTED);
    if (next_random(s, 2)) assert_ok(dat_ep_reset(s->eps[i]));
    assert_ok(dat_ep_free(s->eps[i]));
  }
}

/* A request that was sent just before the last peer's death may still arrive. */
static void turn_late_requests_away(struct survivor* s) {
  DAT_EVENT event;
  DAT_COUNT more;
  while (dat_evd_wait(s->evd, QUIET_US, 1, &event, &more) == DAT_SUCCESS) {
    assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
    assert_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
  }
}

/* Half of the cycles for each role. */
static unsigned int cycles(void) {
  const char* given = getenv("DAPPLE_KILL_CYCLES");
  return (given ? (unsigned int)strtoul(given, NULL, 10) : 50) / 2;
}

static void survive(bool serves) {
  static struct survivor s;
  static struct resources before;
  memset(&s, 0, sizeof s);
  s.serves = serves;
  open_ia(&s.f, IA_NAME);
  register_memory(&s.f);
  s.evd = make_common_evd(&s.f);
  if (serves) assert_ok(dat_psp_create_any(s.f.ia, &s.f.port, s.evd, DAT_PSP_CONSUMER_FLAG, &s.f.psp));
  for (unsigned int i = 0; i < cycles(); ++i) {
    if (i == WARM_UP) count_resources(&before);
    one_cycle(&s, i);
  }
  assert_true(cycles() > WARM_UP);
  turn_late_requests_away(&s);
  assert_true(no_more_than(&before, HEAP_ALLOWANCE + (on_software_device() ? SENDER_ALLOWANCE : 0), RSS_ALLOWANCE));
  /* The survivor can free all of its objects. */
  if (serves) assert_ok(dat_psp_free(s.f.psp));
  assert_ok(dat_evd_free(s.evd));
  assert_ok(dat_lmr_free(s.f.lmr));
  assert_ok(dat_pz_free(s.f.pz));
  assert_ok(dat_ia_close(s.f.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void server__outlives_its_clients(void** state) {
  (void)state;
  survive(true);
}

static void client__outlives_its_servers(void** state) {
  (void)state;
  survive(false);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(server__outlives_its_clients),
      cmocka_unit_test(client__outlives_its_servers),
  };
  if (argc == 5 && strcmp(argv[1], "peer") == 0) be_peer(argv + 2);
  return RUN_TESTS(tests);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/api/kill_cycles.h"

DAT_EVD_HANDLE make_common_evd(struct fixture* f) {
  DAT_EVD_HANDLE evd;
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
  return evd;
}

DAT_EP_HANDLE make_common_ep(struct fixture* f, DAT_EVD_HANDLE evd) {
  DAT_EP_HANDLE ep;
  assert_ok(dat_ep_create(f->ia, f->pz, evd, evd, evd, NULL, &ep));
  return ep;
}

struct window window_of(const struct fixture* f) {
  const struct window window = {(uintptr_t)f->memory + HALF, f->rmr_context};
  return window;
}

DAT_RETURN write_to(struct fixture* f, DAT_EP_HANDLE ep, const struct window* there) {
  DAT_LMR_TRIPLET from = local(f, 0, WRITE_SIZE);
  const DAT_RMR_TRIPLET to = {there->address, WRITE_SIZE, there->context};
  return dat_ep_post_rdma_write(ep, 1, &from, cookie(1), &to, DAT_COMPLETION_DEFAULT_FLAG);
}

static void say(char at, DAT_CONN_QUAL port) {
  const struct message message = {at, port};
  if (write(STDOUT_FILENO, &message, sizeof message) != sizeof message) _exit(1);
}

static struct window received(const void* data, DAT_COUNT size) {
  struct window window;
  if (size < (DAT_COUNT)sizeof window) _exit(1);
  memcpy(&window, data, sizeof window);
  return window;
}

static struct window connect_to(struct fixture* f, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep) {
  struct window mine = window_of(f);
  DAT_EVENT event;
  assert_ok(dat_ep_connect(ep, f->attr.ia_address_ptr, f->port, WAIT_US, sizeof mine, &mine, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG));
  event = expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  return received(event.event_data.connect_event_data.private_data,
                  event.event_data.connect_event_data.private_data_size);
}

static struct window accept_one(struct fixture* f, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, bool answers) {
  struct window mine = window_of(f), theirs;
  DAT_CR_PARAM param;
  DAT_CR_HANDLE cr;
  assert_ok(dat_psp_create_any(f->ia, &f->port, evd, DAT_PSP_CONSUMER_FLAG, &f->psp));
  say('l', f->port);
  cr = expect_event(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
  if (!answers) {
    say('r', 0);
    for (;;) pause();
  }
  assert_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  theirs = received(param.private_data, param.private_data_size);
  assert_ok(dat_cr_accept(cr, ep, sizeof mine, &mine));
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  return theirs;
}

void be_peer(char** arguments) {
  struct fixture f;
  struct window there;
  DAT_EVD_HANDLE evd;
  DAT_EP_HANDLE ep;
  DAT_EVENT event;
  const int phase = atoi(arguments[1]);
  alarm(600); /* its survivor may have failed */
  open_ia(&f, IA_NAME);
  register_memory(&f);
  evd = make_common_evd(&f);
  ep = make_common_ep(&f, evd);
  f.port = strtoull(arguments[2], NULL, 10);
  there =
      strcmp(arguments[0], "client") == 0 ? connect_to(&f, evd, ep) : accept_one(&f, evd, ep, phase != kBeforeAccept);
  say('e', 0);
  for (int written = 0;; ++written) {
    DAT_COUNT more;
    if (phase == kDisconnect && written == 20) {
      say('d', 0);
      dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
    }
    if (write_to(&f, ep, &there) != DAT_SUCCESS) break; /* the other side has disconnected */
    if (dat_evd_wait(evd, WAIT_US, 1, &event, &more) != DAT_SUCCESS) _exit(1);
  }
  for (;;) pause();
}

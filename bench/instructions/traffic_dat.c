/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "bench/common/dat.h"
#include "bench/instructions/traffic.h"

static struct ia ia;
static struct end front, back;
static unsigned char memory[2][MESSAGE_SIZE] __attribute__((aligned(4096)));
static DAT_LMR_TRIPLET source, sink;
static DAT_RMR_TRIPLET target;

static struct end own_end(void) {
  const DAT_EVD_HANDLE recv = make_evd(&ia, QUEUE_LENGTH, DAT_EVD_DTO_FLAG);
  const DAT_EVD_HANDLE request = make_evd(&ia, QUEUE_LENGTH, DAT_EVD_DTO_FLAG);
  const DAT_EVD_HANDLE connect = make_evd(&ia, 8, DAT_EVD_CONNECTION_FLAG);
  return make_end(&ia, recv, request, connect, MESSAGE_SIZE, QUEUE_LENGTH);
}

void traffic_open(const char* where) {
  struct region region;
  struct listener here;
  ia = open_ia(where);
  region = make_region(&ia, memory, sizeof memory, MESSAGE_SIZE);
  source = sink = region.local;
  target = region.remote;
  sink.virtual_address = target.virtual_address = (uintptr_t)memory[1];
  front = own_end();
  back = own_end();
  here = listen_here(&ia);
  connect_ends(&ia, &here, &front, &back);
}

void traffic_close(void) {
  close_ia(&ia);
}

void post_write(uint64_t number) {
  const DAT_DTO_COOKIE cookie = {.as_64 = number};
  const DAT_RETURN status = dat_ep_post_rdma_write(front.ep, 1, &source, cookie, &target, DAT_COMPLETION_DEFAULT_FLAG);
  if (status != DAT_SUCCESS) must(status, "dat_ep_post_rdma_write");
}

void post_send(uint64_t number) {
  const DAT_DTO_COOKIE cookie = {.as_64 = number};
  const DAT_RETURN status = dat_ep_post_send(front.ep, 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  if (status != DAT_SUCCESS) must(status, "dat_ep_post_send");
}

void post_recv(uint64_t number) {
  const DAT_DTO_COOKIE cookie = {.as_64 = number};
  const DAT_RETURN status = dat_ep_post_recv(back.ep, 1, &sink, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  if (status != DAT_SUCCESS) must(status, "dat_ep_post_recv");
}

/* In its callers, as the few instructions of the raw program. */
__attribute__((always_inline)) static inline void check_event(const DAT_EVENT* event, uint64_t number) {
  const DAT_DTO_COMPLETION_EVENT_DATA* data = &event->event_data.dto_completion_event_data;
  if (event->event_number != DAT_DTO_COMPLETION_EVENT || data->status != DAT_DTO_SUCCESS ||
      data->user_cookie.as_64 != number || data->transfered_length != MESSAGE_SIZE) {
    check(false, "a completion is not as it should be");
  }
}

static bool take(DAT_EVD_HANDLE evd, uint64_t number) {
  DAT_EVENT event;
  const DAT_RETURN status = dat_evd_dequeue(evd, &event);
  if (status == DAT_SUCCESS) {
    check_event(&event, number);
    return true;
  }
  if (DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY) must(status, "dat_evd_dequeue");
  return false;
}

bool take_request(uint64_t number) {
  return take(front.request, number);
}

bool take_recv(uint64_t number) {
  return take(back.recv, number);
}

void wait_recv(uint64_t number) {
  DAT_EVENT event;
  DAT_COUNT more;
  const DAT_RETURN status = dat_evd_wait(back.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more);
  if (status != DAT_SUCCESS) must(status, "dat_evd_wait");
  check_event(&event, number);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include <dat2/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/instructions/traffic.h"

#define WAIT_US 60000000U

struct end {
  DAT_EP_HANDLE ep;
  DAT_EVD_HANDLE recv;
  DAT_EVD_HANDLE request;
  DAT_EVD_HANDLE connect;
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static struct end front, back;
static unsigned char memory[2][MESSAGE_SIZE] __attribute__((aligned(4096)));
static DAT_LMR_TRIPLET source, sink;
static DAT_RMR_TRIPLET target;

static void must(DAT_RETURN status, const char* what) {
  const char* type = "?";
  const char* subtype = "?";
  if (status == DAT_SUCCESS) return;
  dat_strerror(status, &type, &subtype);
  fprintf(stderr, "bench: %s: %s %s\n", what, type, subtype);
  exit(1);
}

static void make_end(struct end* end) {
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_mtu_size = MESSAGE_SIZE;
  attr.max_rdma_size = MESSAGE_SIZE;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.max_recv_dtos = QUEUE_LENGTH;
  attr.max_request_dtos = QUEUE_LENGTH;
  attr.max_recv_iov = 1;
  attr.max_request_iov = 1;
  attr.max_rdma_read_in = 1;
  attr.max_rdma_read_out = 1;
  attr.max_rdma_read_iov = 1;
  attr.max_rdma_write_iov = 1;
  must(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->recv), "dat_evd_create");
  must(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->request), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end->connect), "dat_evd_create");
  must(dat_ep_create(ia, pz, end->recv, end->request, end->connect, &attr, &end->ep), "dat_ep_create");
}

static DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  must(dat_evd_wait(evd, WAIT_US, 1, &event, &more), "dat_evd_wait");
  check(event.event_number == number, "an event of another number");
  return event;
}

static void connect_ends(void) {
  DAT_IA_ATTR attr;
  DAT_EVD_HANDLE requests;
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL port = 0;
  DAT_EVENT arrival;
  must(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL), "dat_ia_query");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests), "dat_evd_create");
  must(dat_psp_create_any(ia, &port, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
  must(dat_ep_connect(front.ep, attr.ia_address_ptr, port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  arrival = expect(requests, DAT_CONNECTION_REQUEST_EVENT);
  must(dat_cr_accept(arrival.event_data.cr_arrival_event_data.cr_handle, back.ep, 0, NULL), "dat_cr_accept");
  (void)expect(front.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  (void)expect(back.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void traffic_open(const char* where) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_REGION_DESCRIPTION region;
  must(dat_ia_open((DAT_NAME_PTR)(uintptr_t)where, 8, &async, &ia), "dat_ia_open");
  must(dat_pz_create(ia, &pz), "dat_pz_create");
  region.for_va = memory;
  must(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr,
                      &lmr_context, &rmr_context, NULL, NULL),
       "dat_lmr_create");
  source.virtual_address = (uintptr_t)memory[0];
  sink.virtual_address = target.virtual_address = (uintptr_t)memory[1];
  source.segment_length = sink.segment_length = target.segment_length = MESSAGE_SIZE;
  source.lmr_context = sink.lmr_context = lmr_context;
  target.rmr_context = rmr_context;
  make_end(&front);
  make_end(&back);
  connect_ends();
}

void traffic_close(void) {
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
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

static void check_event(const DAT_EVENT* event, uint64_t number) {
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

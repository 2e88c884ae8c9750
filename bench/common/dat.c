/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "bench/common/dat.h"

#include <stdint.h>
#include <string.h>

void must(DAT_RETURN status, const char* what) {
  const char* type = "?";
  const char* subtype = "?";
  char reason[128];
  if (status == DAT_SUCCESS) return;
  dat_strerror(status, &type, &subtype);
  snprintf(reason, sizeof reason, "%s %s", type, subtype);
  fail(what, reason);
}

struct ia open_ia(const char* name) {
  struct ia made;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr;
  must(dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &async, &made.handle), "dat_ia_open");
  must(dat_ia_query(made.handle, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL), "dat_ia_query");
  made.address = attr.ia_address_ptr;
  must(dat_pz_create(made.handle, &made.pz), "dat_pz_create");
  return made;
}

void close_ia(const struct ia* ia) {
  must(dat_ia_close(ia->handle, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
}

DAT_EVD_HANDLE make_evd(const struct ia* ia, DAT_COUNT length, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd;
  must(dat_evd_create(ia->handle, length, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
  return evd;
}

DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  must(dat_evd_wait(evd, WAIT_US, 1, &event, &more), "dat_evd_wait");
  check(event.event_number == number, "an event of another number");
  return event;
}

struct end make_end(const struct ia* ia, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
                    DAT_VLEN size, DAT_COUNT depth) {
  struct end made = {.recv = recv, .request = request, .connect = connect};
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_mtu_size = attr.max_rdma_size = size;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.max_recv_dtos = attr.max_request_dtos = depth;
  attr.max_recv_iov = attr.max_request_iov = 1;
  attr.max_rdma_read_in = attr.max_rdma_read_out = 1;
  attr.max_rdma_read_iov = attr.max_rdma_write_iov = 1;
  must(dat_ep_create(ia->handle, ia->pz, recv, request, connect, &attr, &made.ep), "dat_ep_create");
  return made;
}

struct listener listen_here(const struct ia* ia) {
  struct listener made = {.requests = make_evd(ia, 8, DAT_EVD_CR_FLAG)};
  must(dat_psp_create_any(ia->handle, &made.port, made.requests, DAT_PSP_CONSUMER_FLAG, &made.psp),
       "dat_psp_create_any");
  return made;
}

void connect_ends(const struct ia* ia, const struct listener* here, const struct end* front, const struct end* back) {
  DAT_EVENT arrival;
  must(dat_ep_connect(front->ep, ia->address, here->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  arrival = expect(here->requests, DAT_CONNECTION_REQUEST_EVENT);
  must(dat_cr_accept(arrival.event_data.cr_arrival_event_data.cr_handle, back->ep, 0, NULL), "dat_cr_accept");
  (void)expect(front->connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  (void)expect(back->connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void disconnect_ends(const struct end* front, const struct end* back) {
  must(dat_ep_disconnect(front->ep, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  (void)expect(front->connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  (void)expect(back->connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  must(dat_ep_free(front->ep), "dat_ep_free");
  must(dat_ep_free(back->ep), "dat_ep_free");
}

struct region make_region(const struct ia* ia, void* memory, size_t size, DAT_VLEN length) {
  struct region made;
  DAT_REGION_DESCRIPTION description;
  memset(&made, 0, sizeof made);
  description.for_va = memory;
  must(dat_lmr_create(ia->handle, DAT_MEM_TYPE_VIRTUAL, description, size, ia->pz, DAT_MEM_PRIV_ALL_FLAG,
                      DAT_VA_TYPE_VA, &made.lmr, &made.local.lmr_context, &made.remote.rmr_context, NULL, NULL),
       "dat_lmr_create");
  made.local.virtual_address = made.remote.virtual_address = (uintptr_t)memory;
  made.local.segment_length = made.remote.segment_length = length;
  return made;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/api/datagrams.h"

#include <string.h>

DAT_EP_ATTR ud_attributes(void) {
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
  attr.max_recv_dtos = 16;
  attr.max_request_dtos = 16;
  attr.max_recv_iov = 4;
  attr.max_request_iov = 4;
  return attr;
}

int set_up_ud_ends(void** state) {
  const DAT_EP_ATTR attr = ud_attributes();
  struct fixture* f;
  set_up_ia(state);
  f = *state;
  make_end(f, &f->active, &attr);
  make_end(f, &f->passive, &attr);
  listen_any(f);
  return 0;
}

void expect_ud(DAT_EVD_HANDLE evd, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type, struct ud_event* out) {
  out->event = expect_event(evd, (DAT_EVENT_NUMBER)number);
  out->connection = &out->event.event_data.connect_event_data;
  out->extension = (const DAT_IB_EXTENSION_EVENT_DATA*)(const void*)out->event.event_extension_data;
  assert_int_equal(out->extension->type, type);
}

DAT_CR_HANDLE take_ud_request(const struct fixture* f) {
  struct ud_event request;
  expect_ud(f->requests, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_IB_UD_CONNECT_REQUEST, &request);
  assert_ptr_equal(request.event.event_data.cr_arrival_event_data.sp_handle.psp_handle, f->psp);
  assert_int_equal(request.event.event_data.cr_arrival_event_data.conn_qual, f->port);
  assert_int_equal(request.extension->status, DAT_OP_SUCCESS);
  return request.event.event_data.cr_arrival_event_data.cr_handle;
}

struct ud_pair resolve_ud(struct fixture* f, struct end* from, struct end* to) {
  struct ud_pair pair;
  struct ud_event event;
  begin_connect(f, from, NULL, 0);
  assert_ok(dat_cr_accept(take_ud_request(f), to->ep, 0, NULL));
  expect_ud(from->connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, &event);
  assert_ptr_equal(event.connection->ep_handle, from->ep);
  pair.to_passive = event.extension->remote_ah;
  pair.active_cm = event.extension->context;
  expect_ud(to->connect, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH, &event);
  assert_ptr_equal(event.connection->ep_handle, to->ep);
  pair.to_active = event.extension->remote_ah;
  pair.passive_cm = event.extension->context;
  return pair;
}

DAT_RETURN send_ud(DAT_EP_HANDLE ep, const DAT_LMR_TRIPLET* segment, const DAT_IB_ADDR_HANDLE* to, uint64_t number) {
  return dat_ib_post_send_ud(ep, 1, (DAT_LMR_TRIPLET*)(uintptr_t)segment, (DAT_IB_ADDR_HANDLE*)(uintptr_t)to,
                             cookie(number), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_DTO_COMPLETION_EVENT_DATA expect_ud_dto(DAT_EVD_HANDLE evd, uint64_t number, DAT_IB_DTOS operation,
                                            DAT_DTO_COMPLETION_STATUS status) {
  struct ud_event found;
  const DAT_DTO_COMPLETION_EVENT_DATA* dto = &found.event.event_data.dto_completion_event_data;
  expect_ud(evd, DAT_IB_DTO_EVENT, operation == DAT_IB_DTO_SEND_UD ? DAT_IB_UD_SEND : DAT_IB_UD_RECV, &found);
  assert_int_equal(dto->status, status);
  assert_int_equal(dto->user_cookie.as_64, number);
  assert_int_equal((int)dto->operation, (int)operation);
  assert_int_equal((int)found.extension->status, (int)status);
  return *dto;
}

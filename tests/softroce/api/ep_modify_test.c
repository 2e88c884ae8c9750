/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dat_ep_create with some arguments left out, and dat_ep_modify: the attributes that can be changed, when, and that the
 * changes take effect.
 */
#include <netinet/in.h>
#include <string.h>

#include "tests/softroce/api/api.h"

#define QUEUES (DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE)

/* The EVDs of an end, and an EP that was made without any of them. */
static void make_bare_end(struct fixture* f, struct end* end) {
  make_end(f, end, NULL);
  assert_ok(dat_ep_free(end->ep));
  assert_ok(dat_ep_create(f->ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL, &end->ep));
}

static DAT_EP_PARAM params_of(const struct fixture* f, const struct end* end) {
  DAT_EP_PARAM param;
  memset(&param, 0xa5, sizeof param);
  param.pz_handle = f->pz;
  param.recv_evd_handle = end->recv;
  param.request_evd_handle = end->request;
  param.connect_evd_handle = end->connect;
  return param;
}

static DAT_EP_PARAM query(DAT_EP_HANDLE ep) {
  DAT_EP_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
  return param;
}

static void create__without_anything_is_unconfigured(void** state) {
  struct fixture* f = *state;
  struct end bare;
  DAT_EP_PARAM param;
  DAT_RSP_HANDLE rsp;
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  make_bare_end(f, &bare);
  assert_int_equal(state_of(bare.ep), DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
  param = query(bare.ep);
  assert_int_equal(param.ep_state, DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
  assert_null(param.pz_handle);
  assert_null(param.connect_evd_handle);
  assert_error(dat_ep_connect(bare.ep, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                              DAT_CONNECT_DEFAULT_FLAG),
               DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ);
  assert_error(dat_ep_post_recv(bare.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONFIGURED);
  assert_error(dat_ep_post_send(bare.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONFIGURED);
  assert_error(dat_ep_disconnect(bare.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFIGURED);
  assert_ok(dat_ep_reset(bare.ep));
  assert_ok(dat_rsp_create(f->ia, 99, bare.ep, f->requests, &rsp));
  assert_int_equal(state_of(bare.ep), DAT_EP_STATE_UNCONFIGURED_RESERVED);
  assert_error(dat_ep_free(bare.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFRESERVED);
  assert_ok(dat_rsp_free(rsp));
  free_end(&bare);
}

static void modify__configures_step_by_step(void** state) {
  struct fixture* f = *state;
  struct end bare;
  DAT_EP_PARAM param;
  DAT_EP_PARAM found;
  make_bare_end(f, &bare);
  param = params_of(f, &bare);
  assert_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
  assert_int_equal(state_of(bare.ep), DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
  assert_error(dat_ep_connect(bare.ep, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                              DAT_CONNECT_DEFAULT_FLAG),
               DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_CONNECT);
  assert_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
  assert_int_equal(state_of(bare.ep), DAT_EP_STATE_UNCONNECTED);
  assert_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
  found = query(bare.ep);
  assert_ptr_equal(found.pz_handle, f->pz);
  assert_ptr_equal(found.recv_evd_handle, bare.recv);
  assert_ptr_equal(found.request_evd_handle, bare.request);
  assert_ptr_equal(found.connect_evd_handle, bare.connect);
  assert_error(dat_evd_free(bare.recv), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
  param.recv_evd_handle = DAT_HANDLE_NULL;
  assert_ok(dat_ep_modify(bare.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
  assert_ok(dat_evd_free(bare.recv));
}

/* Moves data between two EPs that were configured after their creation, with more than the default limits. */
static void modify__what_was_configured_works(void** state) {
  struct fixture* f = *state;
  struct end ends[2];
  DAT_EP_PARAM param;
  make_bare_end(f, &ends[0]);
  make_bare_end(f, &ends[1]);
  for (int i = 0; i < 2; ++i) {
    param = params_of(f, &ends[i]);
    param.ep_attr.max_recv_dtos = 40;
    param.ep_attr.max_request_dtos = 40;
    assert_ok(dat_ep_modify(
        ends[i].ep,
        DAT_EP_FIELD_PZ_HANDLE | QUEUES | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
        &param));
    assert_int_equal(query(ends[i].ep).ep_attr.max_recv_dtos, 40);
  }
  for (unsigned int i = 0; i < 40; ++i) {
    DAT_LMR_TRIPLET to = local(f, HALF + i * 64, 64);
    assert_ok(dat_ep_post_recv(ends[1].ep, 1, &to, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
  begin_connect(f, &ends[0], NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), ends[1].ep, 0, NULL));
  expect_event(ends[0].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(ends[1].connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  fill(f->memory, 40 * 64, 3);
  for (unsigned int i = 0; i < 40; ++i) {
    DAT_LMR_TRIPLET from = local(f, i * 64, 64);
    assert_ok(dat_ep_post_send(ends[0].ep, 1, &from, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
  for (unsigned int i = 0; i < 40; ++i) {
    expect_dto(ends[1].recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    expect_dto(ends[0].request, i, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  }
  assert_true(is_filled(f->memory + HALF, 40 * 64, 3));
}

static void modify__every_attribute(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param = query(f->active.ep);
  DAT_EP_PARAM found;
  DAT_EP_ATTR* attr = &param.ep_attr;
  attr->max_message_size = 65536;
  attr->max_rdma_size = 65537;
  attr->recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr->request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
  attr->max_recv_dtos = 3;
  attr->max_request_dtos = 5;
  attr->max_recv_iov = 2;
  attr->max_request_iov = 3;
  attr->max_rdma_read_in = 1;
  attr->max_rdma_read_out = 2;
  attr->max_rdma_read_iov = on_iwarp() ? 1 : 4; /* on iWARP it is always 1 */
  attr->max_rdma_write_iov = 5;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_ALL & ~DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
  found = query(f->active.ep);
  assert_memory_equal(&found.ep_attr, attr, sizeof *attr);
  for (uint64_t i = 0; i < 3; ++i) {
    DAT_LMR_TRIPLET to = local(f, HALF, 8);
    assert_ok(dat_ep_post_recv(f->active.ep, 1, &to, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_error_type(dat_ep_post_recv(f->active.ep, 1, &to, cookie(9), DAT_COMPLETION_DEFAULT_FLAG),
                    DAT_INSUFFICIENT_RESOURCES);
}

static void modify__fields_that_nobody_may_change(void** state) {
  struct fixture* f = *state;
  const DAT_EP_PARAM param = query(f->active.ep);
  const DAT_EP_PARAM_MASK fixed[] = {DAT_EP_FIELD_IA_HANDLE,
                                     DAT_EP_FIELD_EP_STATE,
                                     DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
                                     DAT_EP_FIELD_LOCAL_PORT_QUAL,
                                     DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
                                     DAT_EP_FIELD_REMOTE_PORT_QUAL,
                                     DAT_EP_FIELD_SRQ_HANDLE,
                                     DAT_EP_FIELD_ALL + 1};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; ++i) {
    assert_error(dat_ep_modify(f->active.ep, fixed[i], &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  assert_error(dat_ep_modify(f->active.ep, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_ok(dat_ep_modify(f->active.ep, 0, &param));
}

/* Sets each field to an impossible value; the EP must not change. */
static void modify__bad_values(void** state) {
  struct fixture* f = *state;
  const DAT_EP_PARAM before = query(f->active.ep);
  struct {
    DAT_EP_PARAM_MASK field;
    DAT_EP_PARAM param;
  } bad[19];
  size_t n = 0;
  /* iWARP's longest message is the longest that the field can hold. */
  const bool sizes_have_a_limit = f->attr.max_message_size != UINT32_MAX;
#define BAD(mask, member, value) \
  bad[n].field = (mask);         \
  bad[n].param = before;         \
  bad[n++].param.member = (value)
  BAD(DAT_EP_FIELD_PZ_HANDLE, pz_handle, f->ia);
  BAD(DAT_EP_FIELD_PZ_HANDLE, pz_handle, f->lmr);
  BAD(DAT_EP_FIELD_RECV_EVD_HANDLE, recv_evd_handle, f->active.connect);
  BAD(DAT_EP_FIELD_REQUEST_EVD_HANDLE, request_evd_handle, f->active.ep);
  BAD(DAT_EP_FIELD_CONNECT_EVD_HANDLE, connect_evd_handle, f->active.recv);
  BAD(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, ep_attr.service_type, DAT_SERVICE_TYPE_EXTENSION_BASE);
  if (sizes_have_a_limit) {
    BAD(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, ep_attr.max_message_size, f->attr.max_message_size + 1);
    BAD(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, ep_attr.max_rdma_size, f->attr.max_rdma_size + 1);
  }
  BAD(DAT_EP_FIELD_EP_ATTR_QOS, ep_attr.qos, (DAT_QOS)0x10);
  BAD(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags, (DAT_COMPLETION_FLAGS)0x100);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos, f->attr.max_dto_per_ep + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos, -1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov, f->attr.max_iov_segments_per_dto + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov, f->attr.max_iov_segments_per_dto + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in, f->attr.max_rdma_read_per_ep_in + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out, f->attr.max_rdma_read_per_ep_out + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, ep_attr.max_rdma_write_iov, f->attr.max_iov_segments_per_dto + 1);
  BAD(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, ep_attr.ep_transport_specific_count, 1);
  BAD(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, ep_attr.ep_provider_specific_count, 1);
  assert_int_equal(n, sizeof bad / sizeof *bad - (sizes_have_a_limit ? 0 : 2));
  for (size_t i = 0; i < n; ++i) {
    DAT_EP_PARAM after;
    assert_error(dat_ep_modify(f->active.ep, bad[i].field, &bad[i].param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    after = query(f->active.ep);
    assert_memory_equal(&after, &before, sizeof after);
  }
}

static void modify__what_is_not_provided(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param = query(f->active.ep);
  assert_int_equal(f->provider.dat_qos_supported, DAT_QOS_BEST_EFFORT);
  param.ep_attr.qos = DAT_QOS_PREMIUM;
  assert_error_type(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_QOS, &param), DAT_MODEL_NOT_SUPPORTED);
  param.comm.type = SOCK_SEQPACKET;
  assert_error_type(dat_ep_modify(f->active.ep, DAT_EP_FIELD_COMM, &param), DAT_COMM_NOT_SUPPORTED);
  param.comm.type = SOCK_STREAM;
  param.comm.protocol = 0;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_COMM, &param));
  assert_int_equal(query(f->active.ep).comm.protocol, 0);
}

static void modify__from_the_connection_on_nothing(void** state) {
  struct fixture* f = *state;
  const DAT_EP_PARAM param = query(f->active.ep);
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_CONNECTED);
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_CONNECTED);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_DISCONNECTED);
  assert_ok(dat_ep_reset(f->active.ep));
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
}

/* Posted receives would be lost with their queue pair. */
static void modify__with_receives_posted(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param = query(f->active.ep);
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  param.ep_attr.max_recv_dtos = 50;
  assert_error(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONNECTED);
  param.ep_attr.max_rdma_read_in = 1;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &param));
}

static void modify__another_pz(void** state) {
  struct fixture* f = *state;
  DAT_EP_PARAM param = query(f->active.ep);
  DAT_PZ_HANDLE other;
  assert_ok(dat_pz_create(f->ia, &other));
  param.pz_handle = other;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
  assert_ptr_equal(query(f->active.ep).pz_handle, other);
  assert_error(dat_pz_free(other), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
  param.pz_handle = DAT_HANDLE_NULL;
  assert_ok(dat_ep_modify(f->active.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
  assert_ok(dat_pz_free(other));
}

static void create__qos(void** state) {
  struct fixture* f = *state;
  DAT_EP_ATTR attr = query(f->active.ep).ep_attr;
  DAT_EP_HANDLE ep;
  attr.qos = DAT_QOS_LOW_LATENCY;
  assert_error_type(dat_ep_create(f->ia, f->pz, f->active.recv, f->active.request, f->active.connect, &attr, &ep),
                    DAT_MODEL_NOT_SUPPORTED);
  attr.qos = (DAT_QOS)0x100;
  assert_error(dat_ep_create(f->ia, f->pz, f->active.recv, f->active.request, f->active.connect, &attr, &ep),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(create__without_anything_is_unconfigured),
      ENDS_TEST(create__qos),
      ENDS_TEST(modify__configures_step_by_step),
      ENDS_TEST(modify__what_was_configured_works),
      ENDS_TEST(modify__every_attribute),
      ENDS_TEST(modify__fields_that_nobody_may_change),
      ENDS_TEST(modify__bad_values),
      ENDS_TEST(modify__what_is_not_provided),
      CONNECTED_TEST(modify__from_the_connection_on_nothing),
      ENDS_TEST(modify__with_receives_posted),
      ENDS_TEST(modify__another_pz),
  };
  return RUN_TESTS(tests);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The features of DAT 1.2: segments of 24 bytes, lengths of 64 bits, windows bound by context, constants with other
 * values.
 */
#include <string.h>

#include "tests/softroce/api/api.h"

enum { kSize = 1000 };

static DAT_VLEN length_of(DAT_EVD_HANDLE evd, uint64_t number) {
  const DAT_DTO_COMPLETION_EVENT_DATA data = expect_dto(evd, number, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  return data.transfered_length; /* all 64 bits of it: the event's memory had other contents before */
}

static void segments__as_many_as_the_ep_takes(void** state) {
  const struct fixture* f = *state;
  DAT_EP_PARAM param;
  DAT_LMR_TRIPLET gather[300], scatter = local(f, HALF, kSize);
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &param));
  const DAT_COUNT most = param.ep_attr.max_request_iov;
  assert_in_range(most, 1, 256);
  for (DAT_COUNT count = 1; count <= most; count++) {
    /* Each segment comes from another place, so that a missing or repeated one is noticed. */
    for (DAT_COUNT i = 0; i < count; i++) gather[i] = local(f, (size_t)i * 64, 3);
    fill(f->memory, (size_t)count * 64, (unsigned int)count);
    memset(f->memory + HALF, 0, kSize);
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &scatter, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, count, gather, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
    assert_int_equal(length_of(f->active.request, 2), count * 3);
    assert_int_equal(length_of(f->passive.recv, 1), count * 3);
    for (DAT_COUNT i = 0; i < count; i++) {
      assert_memory_equal(f->memory + HALF + i * 3, f->memory + i * 64, 3);
    }
  }
  assert_error(dat_ep_post_send(f->active.ep, 257, gather, cookie(2), DAT_COMPLETION_DEFAULT_FLAG),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void segments__of_a_receive_may_be_longer_than_any_message(void** state) {
  const struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, kSize), sink = local(f, HALF, kSize);
  fill(f->memory, kSize, 7);
  sink.segment_length = UINT64_C(1) << 40; /* the device gets 4 GiB less one byte of it */
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  const DAT_EVENT event = expect_event(f->passive.recv, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA* dto = &event.event_data.dto_completion_event_data;
  /* A device may check the whole segment against the region, or only the arriving data; the result depends on that. */
  if (dto->status == DAT_DTO_SUCCESS) {
    assert_int_equal(dto->transfered_length, kSize);
    assert_true(is_filled(f->memory + HALF, kSize, 7));
  } else {
    assert_true(dto->status == DAT_DTO_ERR_LOCAL_PROTECTION || dto->status == DAT_DTO_ERR_LOCAL_EP);
  }
}

static void rdma__remote_lengths_of_64_bits(void** state) {
  const struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, kSize);
  DAT_RMR_TRIPLET there = remote(f, HALF, kSize);
  fill(f->memory, kSize, 9);
  memset(f->memory + HALF, 0, kSize);
  /* A longer segment than necessary: a length is only compared. Its low 32 bits are 0. */
  there.segment_length = UINT64_C(1) << 32;
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(3), &there, DAT_COMPLETION_DEFAULT_FLAG));
  assert_int_equal(expect_written(f, 3).transfered_length, kSize);
  assert_true(is_filled(f->memory + HALF, kSize, 9));
  source.segment_length = UINT64_C(1) << 32;
  assert_error(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(3), &there, DAT_COMPLETION_DEFAULT_FLAG),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static void sync__lengths_of_64_bits(void** state) {
  const struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, 64);
  segment.segment_length = (UINT64_C(1) << 32) + 64; /* 64 if only 32 bits were compared */
  assert_error(dat_lmr_sync_rdma_read(f->ia, &segment, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_lmr_sync_rdma_write(f->ia, &segment, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void rmr_bind__by_the_context_of_the_region(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE evd;
  struct end end, peer;
  DAT_RMR_HANDLE rmr;
  DAT_RMR_PARAM param;
  DAT_RMR_CONTEXT context = 0;
  DAT_LMR_TRIPLET part = local(f, HALF, kSize), source = local(f, 0, kSize);
  if (on_iwarp()) {
    assert_error(dat_rmr_create(f->pz, &rmr), DAT_MODEL_NOT_SUPPORTED, 0);
    return;
  }
  assert_ok(dat_evd_create(f->ia, 16, DAT_HANDLE_NULL,
                           (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG), &evd));
  end.connect = end.request = end.recv = evd;
  assert_ok(dat_ep_create(f->ia, f->pz, evd, evd, evd, NULL, &end.ep));
  make_end(f, &peer, NULL);
  begin_connect(f, &peer, NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), end.ep, 0, NULL));
  expect_event(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(peer.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  assert_ok(dat_rmr_create(f->pz, &rmr));
  /* 2.0's remote atomics, and a flag of regions. */
  assert_error(
      dat_rmr_bind(rmr, &part, (DAT_MEM_PRIV_FLAGS)0x40, end.ep, cookie(10), DAT_COMPLETION_DEFAULT_FLAG, &context),
      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(
      dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_RO_DISABLE_FLAG, end.ep, cookie(10), DAT_COMPLETION_DEFAULT_FLAG, &context),
      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_ok(dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, end.ep, cookie(11), DAT_COMPLETION_DEFAULT_FLAG,
                         &context));
  const DAT_EVENT event = expect_event(evd, DAT_RMR_BIND_COMPLETION_EVENT);
  assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
  assert_int_equal(event.event_data.rmr_completion_event_data.user_cookie.as_64, 11);
  assert_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
  assert_int_equal(param.lmr_triplet.lmr_context, f->lmr_context);
  assert_int_equal(param.lmr_triplet.segment_length, kSize);
  assert_int_equal(param.rmr_context, context);
  const DAT_RMR_TRIPLET there = rmr_triplet((uintptr_t)f->memory + HALF, kSize, context);
  fill(f->memory, kSize, 21);
  memset(f->memory + HALF, 0, kSize);
  assert_ok(dat_ep_post_rdma_write(peer.ep, 1, &source, cookie(12), &there, DAT_COMPLETION_DEFAULT_FLAG));
  assert_int_equal(length_of(peer.request, 12), kSize);
  assert_true(is_filled(f->memory + HALF, kSize, 21));
  /* The LMR cannot be freed while a window is bound to it. */
  assert_error(dat_lmr_free(f->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
  part.segment_length = 0;
  assert_ok(dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_NONE_FLAG, end.ep, cookie(13), DAT_COMPLETION_DEFAULT_FLAG, NULL));
  expect_event(evd, DAT_RMR_BIND_COMPLETION_EVENT);
  assert_ok(dat_rmr_free(rmr));
}

static void ep_query__takes_a_mask_of_all_bits(void** state) {
  const struct fixture* f = *state;
  DAT_EP_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_ep_query(f->active.ep, (DAT_EP_PARAM_MASK)0xffff, &param));
  assert_int_equal(param.ep_state, DAT_EP_STATE_CONNECTED);
  assert_ptr_equal(param.request_evd_handle, f->active.request);
}

static void queries__say_it_in_1_2s_values(void** state) {
  const struct fixture* f = *state;
  DAT_SRQ_ATTR attr = {16, 1, 0};
  DAT_SRQ_PARAM param;
  DAT_SRQ_HANDLE srq;
  DAT_CNO_HANDLE cno;
  DAT_CNO_PARAM cno_param;
  const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
  assert_ok(dat_srq_create(f->ia, f->pz, &attr, &srq));
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
  assert_int_equal(param.srq_state, 0); /* OPERATIONAL; 2.0 has it as 1 */
  assert_ok(dat_srq_free(srq));
  assert_ok(dat_cno_create(f->ia, none, &cno));
  memset(&cno_param, 0xa5, sizeof cno_param);
  assert_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &cno_param));
  assert_ptr_equal(cno_param.ia_handle, f->ia);
  assert_null(cno_param.agent.proxy_agent_func);
  assert_ok(dat_cno_free(cno));
  assert_int_equal(f->provider.dapl_version_major, 1);
  assert_int_equal(f->provider.dapl_version_minor, 2);
  assert_int_equal(f->provider.lmr_mem_types_supported, DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  assert_int_equal(f->attr.num_vendor_attr, 0);
  assert_true(f->attr.num_transport_attr > 0);
  assert_true(f->attr.max_message_size >= UINT64_C(1) << 23);
  assert_true(f->attr.max_lmr_block_size > UINT32_MAX); /* 2.0 cannot express such a size */
  for (DAT_COUNT i = 0; i < f->provider.num_provider_specific_attr; i++) {
    const DAT_NAMED_ATTR* named = &f->provider.provider_specific_attr[i];
    if (strcmp(named->name, "DAT_EXTENSION_INTERFACE") == 0) assert_string_equal(named->value, "FALSE");
  }
}

static void rejects__are_a_peers(void** state) {
  struct fixture* f = *state;
  begin_connect(f, &f->active, NULL, 0);
  assert_ok(dat_cr_reject(take_request(f), 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(segments__as_many_as_the_ep_takes),
      CONNECTED_TEST(segments__of_a_receive_may_be_longer_than_any_message),
      CONNECTED_TEST(rdma__remote_lengths_of_64_bits),
      CONNECTED_TEST(sync__lengths_of_64_bits),
      CONNECTED_TEST(rmr_bind__by_the_context_of_the_region),
      CONNECTED_TEST(ep_query__takes_a_mask_of_all_bits),
      CONNECTED_TEST(queries__say_it_in_1_2s_values),
      ENDS_TEST(rejects__are_a_peers),
  };
  return RUN_TESTS(tests);
}

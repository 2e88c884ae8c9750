/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Features that iWARP lacks are refused with the specification's error, and an IA's attributes agree with that. The
 * program also tests how a connection begins, ends and begins again on iWARP, and where the data of an RDMA Read may
 * go. On a device of another kind it prints that and tests nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/api/datagrams.h"

#define FLAGS DAT_COMPLETION_DEFAULT_FLAG

static const char* named(const DAT_PROVIDER_ATTR* attr, const char* name) {
  for (DAT_COUNT i = 0; i < attr->num_provider_specific_attr; ++i) {
    if (strcmp(attr->provider_specific_attr[i].name, name) == 0) return attr->provider_specific_attr[i].value;
  }
  return "missing";
}

static void ia_query__says_what_there_is(void** state) {
  struct fixture* f = *state;
  static const char* const absent[] = {DAT_IB_ATTR_FETCH_AND_ADD, DAT_IB_ATTR_CMP_AND_SWAP,
                                       DAT_IB_ATTR_IMMED_DATA,    DAT_IB_ATTR_UD,
                                       DAT_IB_ATTR_COUNTERS,      "DAT_EXTENSION_INTERFACE"};
  assert_int_equal(f->attr.extension_supported, DAT_EXTENSION_NONE);
  assert_int_equal(f->attr.zb_supported, DAT_FALSE);
  assert_int_equal(f->attr.max_rmrs, 0);
  assert_int_equal(f->attr.max_iov_segments_per_rdma_read, 1);
  assert_int_equal(f->provider.rdma_write_for_rdma_read_req, DAT_TRUE);
  assert_int_equal(f->provider.rdma_read_lmr_rmr_context_exposure, DAT_TRUE);
  assert_string_equal(f->attr.adapter_name, getenv("SOFTROCE_DEVICE"));
  assert_string_equal(named(&f->provider, "DAPPLE_TRANSPORT"), "iWARP");
  for (size_t i = 0; i < sizeof absent / sizeof *absent; ++i) {
    assert_string_equal(named(&f->provider, absent[i]), "FALSE");
  }
}

static void windows__are_refused(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  assert_error(dat_rmr_create(f->pz, &rmr), DAT_MODEL_NOT_SUPPORTED, 0);
  assert_error(dat_rmr_create_for_ep(f->pz, &rmr), DAT_MODEL_NOT_SUPPORTED, 0);
}

static void lmr_create__what_needs_another_transport_is_refused(void** state) {
  struct fixture* f = *state;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory;
  assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
                              &lmr, NULL, NULL, NULL, NULL),
               DAT_MODEL_NOT_SUPPORTED, 0);
  assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz,
                              (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
                              DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL),
               DAT_MODEL_NOT_SUPPORTED, 0);
}

static void ep_create__datagrams_are_refused(void** state) {
  struct fixture* f = *state;
  const DAT_EP_ATTR attr = ud_attributes();
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  assert_error(dat_ep_create(f->ia, f->pz, f->active.recv, f->active.request, f->active.connect, &attr, &ep),
               DAT_MODEL_NOT_SUPPORTED, 0);
}

/* The connection continues as if nothing had been posted. */
static void posts__features_that_iwarp_lacks_are_refused(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET here = local(f, 0, 8);
  DAT_LMR_TRIPLET there = local(f, HALF, 8);
  DAT_LMR_TRIPLET halves[2] = {local(f, 0, 8), local(f, 64, 8)};
  const DAT_RMR_TRIPLET word = remote(f, HALF, 8);
  const DAT_RMR_TRIPLET two_words = remote(f, HALF, 16);
  DAT_EP_HANDLE ep = f->active.ep;
  /* The IA has no extensions, so the registry passes none on. */
  assert_error(dat_ib_post_fetch_and_add(ep, 1, &here, cookie(1), &word, FLAGS), DAT_NOT_IMPLEMENTED, 0);
  assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, &here, cookie(2), &word, FLAGS), DAT_NOT_IMPLEMENTED, 0);
  assert_error(dat_ib_post_rdma_write_immed(ep, 1, &here, cookie(3), &word, 4, FLAGS), DAT_NOT_IMPLEMENTED, 0);
  assert_error(dat_ep_post_send_with_invalidate(ep, 1, &here, cookie(4), FLAGS, DAT_TRUE, f->rmr_context),
               DAT_MODEL_NOT_SUPPORTED, 0);
  /* An answer has only one destination segment. */
  assert_error_type(dat_ep_post_rdma_read(ep, 2, halves, cookie(5), &two_words, FLAGS), DAT_INVALID_PARAMETER);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &there, cookie(6), FLAGS));
  assert_ok(dat_ep_post_send(ep, 1, &here, cookie(7), FLAGS));
  expect_dto(f->active.request, 7, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  expect_dto(f->passive.recv, 6, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_nothing(f->active.request);
}

static DAT_LMR_HANDLE register_sink(struct fixture* f, int privileges, DAT_LMR_CONTEXT* context) {
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz, (DAT_MEM_PRIV_FLAGS)privileges,
                           DAT_VA_TYPE_VA, &lmr, context, NULL, NULL, NULL));
  return lmr;
}

/* rdma_write_for_rdma_read_req asks for this. */
static void rdma_read__into_memory_that_peers_may_write(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET sink = local(f, 0, 4096);
  const DAT_RMR_TRIPLET source = remote(f, HALF, 4096);
  DAT_LMR_HANDLE lmr =
      register_sink(f, DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &sink.lmr_context);
  fill(f->memory + HALF, 4096, 5);
  sync_for_read(f, HALF, 4096);
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &sink, cookie(1), &source, FLAGS));
  expect_dto(f->active.request, 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory, 4096, 5));
  assert_ok(dat_lmr_free(lmr));
}

/* RFC 5044: the active end sends first; after that the passive end's waiting requests follow. */
static void connect__the_active_end_sends_first(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET question = local(f, 0, 16);
  DAT_LMR_TRIPLET asked = local(f, HALF, 16);
  DAT_LMR_TRIPLET answer = local(f, HALF + 4096, 16);
  DAT_LMR_TRIPLET answered = local(f, 4096, 16);
  fill(f->memory, 16, 1);
  fill(f->memory + HALF + 4096, 16, 2);
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &answered, cookie(1), FLAGS));
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &asked, cookie(2), FLAGS));
  connect_ends(f);
  assert_ok(dat_ep_post_send(f->active.ep, 1, &question, cookie(3), FLAGS));
  expect_dto(f->passive.recv, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF, 16, 1));
  assert_ok(dat_ep_post_send(f->passive.ep, 1, &answer, cookie(4), FLAGS));
  expect_dto(f->active.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + 4096, 16, 2));
}

/* Each receive completes as flushed, in order, and a reset endpoint connects again. */
static void disconnect__flushes_and_the_endpoint_serves_again(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET into = local(f, HALF, 16);
  for (uint64_t round = 0; round < 2; ++round) {
    if (round > 0) connect_ends(f);
    for (uint64_t i = 0; i < 3; ++i) {
      assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(10 + i), FLAGS));
      assert_ok(dat_ep_post_recv(f->active.ep, 1, &into, cookie(20 + i), FLAGS));
    }
    assert_ok(dat_ep_disconnect(f->active.ep, round ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    for (uint64_t i = 0; i < 3; ++i) expect_dto(f->active.recv, 20 + i, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
    expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    for (uint64_t i = 0; i < 3; ++i) expect_dto(f->passive.recv, 10 + i, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
    assert_ok(dat_ep_post_recv(f->active.ep, 1, &into, cookie(30), FLAGS));
    expect_dto(f->active.recv, 30, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED);
    assert_ok(dat_ep_reset(f->active.ep));
    assert_ok(dat_ep_reset(f->passive.ep));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(ia_query__says_what_there_is),
      IA_TEST(windows__are_refused),
      IA_TEST(lmr_create__what_needs_another_transport_is_refused),
      ENDS_TEST(ep_create__datagrams_are_refused),
      CONNECTED_TEST(posts__features_that_iwarp_lacks_are_refused),
      CONNECTED_TEST(rdma_read__into_memory_that_peers_may_write),
      ENDS_TEST(connect__the_active_end_sends_first),
      CONNECTED_TEST(disconnect__flushes_and_the_endpoint_serves_again),
  };
  if (!on_iwarp()) {
    print_message("SKIP: %s is not an iWARP device\n", getenv("SOFTROCE_DEVICE"));
    return 77;
  }
  return RUN_TESTS(tests);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dat_ib_post_fetch_and_add and dat_ib_post_cmp_and_swap. With DAPPLE_COHERENCE=cpu the provider also maintains the
 * results.
 */
#include <dat2/dat_ib_extensions.h>
#include <string.h>

#include "tests/softroce/api/api.h"

#define FLAGS DAT_COMPLETION_DEFAULT_FLAG

struct words {
  DAT_LMR_HANDLE lmr;
  DAT_RMR_TRIPLET remote; /* at the start of the second half */
  DAT_LMR_TRIPLET result; /* at the start of the first */
  volatile uint64_t* target;
  volatile uint64_t* old;
};

static struct words make_words(struct fixture* f, int priv) {
  struct words w;
  DAT_REGION_DESCRIPTION region;
  memset(&w, 0, sizeof w);
  region.for_va = f->memory + HALF;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz, (DAT_MEM_PRIV_FLAGS)priv, DAT_VA_TYPE_VA,
                           &w.lmr, NULL, &w.remote.rmr_context, NULL, NULL));
  w.remote.virtual_address = (uintptr_t)f->memory + HALF;
  w.remote.segment_length = 8;
  w.result = local(f, 0, 8);
  w.target = (volatile uint64_t*)(void*)(f->memory + HALF);
  w.old = (volatile uint64_t*)(void*)f->memory;
  return w;
}

static struct words make_atomic_words(struct fixture* f) {
  return make_words(f, DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC);
}

static void expect_atomic(const struct fixture* f, uint64_t number, DAT_IB_DTOS operation, DAT_IB_EXT_TYPE type,
                          DAT_DTO_COMPLETION_STATUS status) {
  const DAT_EVENT event = expect_event(f->active.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA* dto = &event.event_data.dto_completion_event_data;
  const DAT_IB_EXTENSION_EVENT_DATA* extension = (const DAT_IB_EXTENSION_EVENT_DATA*)&event.event_extension_data[0];
  assert_int_equal(dto->status, status);
  assert_int_equal(dto->user_cookie.as_64, number);
  assert_ptr_equal(dto->ep_handle, f->active.ep);
  assert_int_equal((int)dto->operation, (int)operation);
  assert_int_equal(extension->type, type);
  assert_int_equal(extension->status == DAT_OP_SUCCESS, status == DAT_DTO_SUCCESS);
  if (status == DAT_DTO_SUCCESS) assert_int_equal(dto->transfered_length, 8);
}

static void fetch_and_add__adds_and_gives_the_old_value(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  DAT_LMR_TRIPLET seen = local(f, HALF, 8);
  static const uint64_t adds[] = {1, 0, 41, UINT64_MAX, 0x123456789abcdef0, 0x8000000000000000};
  uint64_t expected = 5;
  *w.target = expected;
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &seen, 1));
  for (size_t i = 0; i < sizeof adds / sizeof *adds; ++i) {
    *w.old = 0xeeeeeeeeeeeeeeee;
    assert_ok(dat_ib_post_fetch_and_add(f->active.ep, adds[i], &w.result, cookie(i), &w.remote, FLAGS));
    expect_atomic(f, i, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS);
    assert_int_equal(*w.old, expected);
    expected += adds[i];
    assert_ok(dat_lmr_sync_rdma_write(f->ia, &seen, 1));
    assert_int_equal(*w.target, expected);
  }
}

static void cmp_and_swap__swaps_only_what_is_equal(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  DAT_LMR_TRIPLET seen = local(f, HALF, 8);
  *w.target = 100;
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &seen, 1));
  assert_ok(dat_ib_post_cmp_and_swap(f->active.ep, 99, 7, &w.result, cookie(1), &w.remote, FLAGS));
  expect_atomic(f, 1, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP, DAT_DTO_SUCCESS);
  assert_int_equal(*w.old, 100);
  assert_int_equal(*w.target, 100);
  assert_ok(dat_ib_post_cmp_and_swap(f->active.ep, 100, 0xfedcba9876543210, &w.result, cookie(2), &w.remote, FLAGS));
  expect_atomic(f, 2, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP, DAT_DTO_SUCCESS);
  assert_int_equal(*w.old, 100);
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &seen, 1));
  assert_int_equal(*w.target, 0xfedcba9876543210);
}

static void atomics__many_in_flight_lose_nothing(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  enum { kRounds = 20, kDepth = 8 };
  *w.target = 0;
  sync_for_write(f, HALF, 8);
  for (uint64_t round = 0; round < kRounds; ++round) {
    for (uint64_t i = 0; i < kDepth; ++i) {
      DAT_LMR_TRIPLET result = local(f, 8 * i, 8);
      assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 3, &result, cookie(i), &w.remote, FLAGS));
    }
    for (uint64_t i = 0; i < kDepth; ++i) {
      expect_atomic(f, i, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS);
      assert_int_equal(w.old[i], (round * kDepth + i) * 3);
    }
  }
  sync_for_write(f, HALF, 8);
  assert_int_equal(*w.target, 3 * kRounds * kDepth);
}

static void atomics__suppressed_ones_make_no_event(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  *w.target = 0;
  sync_for_write(f, HALF, 8);
  for (int i = 0; i < 100; ++i) {
    assert_posted(
        dat_ib_post_fetch_and_add(f->active.ep, 1, &w.result, cookie(1), &w.remote, DAT_COMPLETION_SUPPRESS_FLAG));
  }
  assert_posted(dat_ib_post_fetch_and_add(f->active.ep, 1, &w.result, cookie(2), &w.remote, FLAGS));
  expect_atomic(f, 2, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS);
  sync_for_write(f, HALF, 8);
  assert_int_equal(*w.target, 101);
  expect_nothing(f->active.request);
}

static void atomics__result_in_a_zero_based_region(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET result = {16, 8, 0};
  region.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
                           &lmr, &result.lmr_context, NULL, NULL, NULL));
  *w.target = 77;
  sync_for_write(f, HALF, 8);
  assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 1, &result, cookie(1), &w.remote, FLAGS));
  expect_atomic(f, 1, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS);
  assert_int_equal(w.old[2], 77);
}

static void atomics__longer_segments_take_8_bytes(void** state) {
  struct fixture* f = *state;
  struct words w = make_atomic_words(f);
  *w.target = 9;
  sync_for_write(f, HALF, 8);
  memset(f->memory, 0xcc, 64);
  w.result.segment_length = 64;
  w.remote.segment_length = 64;
  assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 1, &w.result, cookie(1), &w.remote, FLAGS));
  expect_atomic(f, 1, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_SUCCESS);
  assert_int_equal(*w.old, 9);
  assert_true(is_all(f->memory + 8, 56, 0xcc));
}

static void atomics__bad_arguments(void** state) {
  struct fixture* f = *state;
  const struct words w = make_atomic_words(f);
  DAT_LMR_TRIPLET result = w.result;
  DAT_RMR_TRIPLET word = w.remote;
  DAT_EP_HANDLE ep = f->active.ep;
  assert_error(dat_ib_post_fetch_and_add(ep, 1, NULL, cookie(1), &word, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  assert_error(dat_ib_post_fetch_and_add(ep, 1, &result, cookie(1), NULL, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG5);
  assert_error(dat_ib_post_fetch_and_add(ep, 1, &result, cookie(1), &word, 0x100), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
  assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, NULL, cookie(1), &word, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG4);
  assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, &result, cookie(1), NULL, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG6);
  assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, &result, cookie(1), &word, 0x100), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG7);
  assert_error(dat_ib_post_fetch_and_add(f->pz, 1, &result, cookie(1), &word, FLAGS), DAT_INVALID_HANDLE,
               DAT_INVALID_HANDLE_EP);
  for (unsigned int i = 1; i < 8; ++i) {
    word.virtual_address = w.remote.virtual_address + i;
    assert_error(dat_ib_post_fetch_and_add(ep, 1, &result, cookie(1), &word, FLAGS), DAT_INVALID_PARAMETER,
                 DAT_INVALID_ARG5);
    assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, &result, cookie(1), &word, FLAGS), DAT_INVALID_PARAMETER,
                 DAT_INVALID_ARG6);
  }
  word = w.remote;
  word.segment_length = 7;
  assert_error(dat_ib_post_fetch_and_add(ep, 1, &result, cookie(1), &word, FLAGS), DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
  word = w.remote;
  result.segment_length = 7;
  assert_error(dat_ib_post_cmp_and_swap(ep, 1, 2, &result, cookie(1), &word, FLAGS), DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
  expect_nothing(f->active.request);
}

static void atomics__need_the_privilege(void** state) {
  struct fixture* f = *state;
  struct words w = make_words(f, DAT_MEM_PRIV_ALL_FLAG);
  *w.target = 5;
  assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 1, &w.result, cookie(1), &w.remote, FLAGS));
  expect_atomic(f, 1, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, DAT_DTO_ERR_REMOTE_ACCESS);
  assert_int_equal(*w.target, 5);
}

static void atomics__not_before_there_is_a_connection(void** state) {
  struct fixture* f = *state;
  const struct words w = make_atomic_words(f);
  assert_error(dat_ib_post_fetch_and_add(f->active.ep, 1, &w.result, cookie(1), &w.remote, FLAGS), DAT_INVALID_STATE,
               DAT_INVALID_STATE_EP_UNCONNECTED);
}

static void ia_query__says_that_there_are_atomics(void** state) {
  const struct fixture* f = *state;
  int found = 0;
  for (DAT_COUNT i = 0; i < f->provider.num_provider_specific_attr; ++i) {
    const DAT_NAMED_ATTR* attr = &f->provider.provider_specific_attr[i];
    if (strcmp(attr->name, DAT_IB_ATTR_FETCH_AND_ADD) != 0 && strcmp(attr->name, DAT_IB_ATTR_CMP_AND_SWAP) != 0)
      continue;
    assert_string_equal(attr->value, "TRUE");
    ++found;
  }
  assert_int_equal(found, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(fetch_and_add__adds_and_gives_the_old_value),
      CONNECTED_TEST(cmp_and_swap__swaps_only_what_is_equal),
      CONNECTED_TEST(atomics__many_in_flight_lose_nothing),
      CONNECTED_TEST(atomics__suppressed_ones_make_no_event),
      CONNECTED_TEST(atomics__result_in_a_zero_based_region),
      CONNECTED_TEST(atomics__longer_segments_take_8_bytes),
      CONNECTED_TEST(atomics__bad_arguments),
      CONNECTED_TEST(atomics__need_the_privilege),
      ENDS_TEST(atomics__not_before_there_is_a_connection),
      IA_TEST(ia_query__says_that_there_are_atomics),
  };
  return RUN_TESTS(tests);
}

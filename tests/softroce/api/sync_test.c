/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dat_lmr_sync_rdma_read and dat_lmr_sync_rdma_write, sentence by sentence. Run as the device is, with
 * DAPPLE_COHERENCE=cpu, where every call executes the CPU's cache instructions, and on the emulator.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softroce/api/api.h"

typedef DAT_RETURN (*Sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN);
static const Sync kBoth[] = {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write};
#define FOR_BOTH(sync) for (const Sync* sync = kBoth; sync < kBoth + 2; ++sync)

static void lmr_sync_req__says_what_the_device_needs(void** state) {
  const struct fixture* f = *state;
  assert_int_equal(f->provider.lmr_sync_req, needs_sync() ? DAT_TRUE : DAT_FALSE);
}

static void sync__num_segments_0_whatever_the_pointer(void** state) {
  const struct fixture* f = *state;
  FOR_BOTH(sync) {
    assert_ok((*sync)(f->ia, NULL, 0));
    assert_ok((*sync)(f->ia, (const DAT_LMR_TRIPLET*)(uintptr_t)8, 0));
  }
}

static void sync__null_with_segments(void** state) {
  const struct fixture* f = *state;
  FOR_BOTH(sync) {
    assert_error((*sync)(f->ia, NULL, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    assert_error((*sync)(f->ia, NULL, UINT64_MAX), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
}

static void sync__invalid_handle(void** state) {
  const struct fixture* f = *state;
  const DAT_LMR_TRIPLET segment = local(f, 0, 64);
  FOR_BOTH(sync) {
    assert_error_type((*sync)(DAT_HANDLE_NULL, &segment, 1), DAT_INVALID_HANDLE);
    assert_error_type((*sync)((DAT_IA_HANDLE)(uintptr_t)999, &segment, 1), DAT_INVALID_HANDLE);
    assert_error_type((*sync)(f->pz, &segment, 1), DAT_INVALID_HANDLE);
  }
}

static void expect_one(const struct fixture* f, DAT_LMR_TRIPLET segment, bool good) {
  FOR_BOTH(sync) {
    if (good) {
      assert_ok((*sync)(f->ia, &segment, 1));
    } else {
      assert_error((*sync)(f->ia, &segment, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    }
  }
}

static void sync__range_inside_and_outside_the_lmr(void** state) {
  const struct fixture* f = *state;
  expect_one(f, local(f, 0, 1), true);
  expect_one(f, local(f, 0, MEMORY_SIZE), true);
  expect_one(f, local(f, MEMORY_SIZE - 1, 1), true);
  expect_one(f, local(f, 3, 61), true);
  expect_one(f, local(f, 63, 2), true);
  expect_one(f, local(f, (size_t)-1, 1), false);
  expect_one(f, local(f, (size_t)-1, 2), false);
  expect_one(f, local(f, 0, MEMORY_SIZE + 1), false);
  expect_one(f, local(f, MEMORY_SIZE - 1, 2), false);
  expect_one(f, local(f, MEMORY_SIZE, 1), false);
  expect_one(f, local(f, 0, UINT32_MAX), false);
  expect_one(f, local(f, 0 - (uintptr_t)f->memory, 1), false);
}

static void sync__segment_that_wraps_the_address_space(void** state) {
  const struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, UINT32_MAX);
  segment.virtual_address = UINT64_MAX;
  expect_one(f, segment, false);
  segment.segment_length = 1;
  expect_one(f, segment, false);
  segment.segment_length = 0;
  expect_one(f, segment, false);
}

static void sync__segment_of_length_0_is_checked(void** state) {
  const struct fixture* f = *state;
  DAT_LMR_TRIPLET segment = local(f, 0, 0);
  expect_one(f, segment, true);
  expect_one(f, local(f, 100, 0), true);
  expect_one(f, local(f, MEMORY_SIZE, 0), true);
  expect_one(f, local(f, MEMORY_SIZE + 1, 0), false);
  expect_one(f, local(f, (size_t)-1, 0), false);
  segment.lmr_context ^= 0x5a5a5a00;
  expect_one(f, segment, false);
}

static void sync__unknown_lmr_context(void** state) {
  struct fixture* f = *state;
  struct fixture other;
  DAT_LMR_TRIPLET segment = local(f, 0, 64);
  segment.lmr_context ^= 0x5a5a5a00;
  expect_one(f, segment, false);
  segment.lmr_context = 0;
  expect_one(f, segment, false);

  /* Only another IA knows this region. */
  open_ia(&other, IA_NAME);
  register_memory(&other);
  expect_one(&other, local(&other, 0, 64), true);
  expect_one(f, local(&other, 0, 64), false);
  munmap(other.memory, MEMORY_SIZE);
  assert_ok(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));

  /* A freed region. */
  segment = local(f, 0, 64);
  assert_ok(dat_lmr_free(f->lmr));
  expect_one(f, segment, false);
}

static DAT_LMR_CONTEXT register_part(struct fixture* f, DAT_PZ_HANDLE pz, size_t offset, size_t length,
                                     DAT_LMR_HANDLE* lmr) {
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_CONTEXT context = 0;
  region.for_va = f->memory + offset;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, lmr,
                           &context, NULL, NULL, NULL));
  return context;
}

static void sync__lmrs_of_several_protection_zones_in_one_call(void** state) {
  struct fixture* f = *state;
  enum { kRegions = 4 };
  DAT_LMR_HANDLE lmrs[kRegions];
  DAT_PZ_HANDLE pzs[2];
  DAT_LMR_TRIPLET segments[kRegions + 1];
  for (size_t i = 0; i < 2; ++i) assert_ok(dat_pz_create(f->ia, &pzs[i]));
  for (size_t i = 0; i < kRegions; ++i) {
    segments[i] = local(f, i * 5000, 1000);
    segments[i].lmr_context = register_part(f, pzs[i % 2], i * 5000, 1000, &lmrs[i]);
  }
  segments[kRegions] = local(f, 0, 4096);
  FOR_BOTH(sync) assert_ok((*sync)(f->ia, segments, kRegions + 1));
  /* Each segment must lie within its own region. */
  segments[2].segment_length = 1001;
  FOR_BOTH(sync) {
    assert_error((*sync)(f->ia, segments, kRegions + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
}

static void sync__1000_segments_and_one_bad_one(void** state) {
  struct fixture* f = *state;
  enum { kSegments = 1000 };
  static DAT_LMR_TRIPLET segments[kSegments];
  for (size_t i = 0; i < kSegments; ++i) segments[i] = local(f, i * 777, i % 300);
  fill(f->memory, 800000, 1);
  FOR_BOTH(sync) assert_ok((*sync)(f->ia, segments, kSegments));
  assert_true(is_filled(f->memory, 800000, 1));
  segments[kSegments - 1].virtual_address = (uintptr_t)f->memory + MEMORY_SIZE;
  segments[kSegments - 1].segment_length = 1;
  FOR_BOTH(sync) {
    assert_error((*sync)(f->ia, segments, kSegments), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  assert_true(is_filled(f->memory, 800000, 1));
}

static void sync__memory_mapped_for_reading_only(void** state) {
  struct fixture* f = *state;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET segment;
  region.for_va = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  segment.virtual_address = (uintptr_t)region.for_va;
  segment.segment_length = 8192;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 8192, f->pz,
                           DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, &lmr,
                           &segment.lmr_context, NULL, NULL, NULL));
  FOR_BOTH(sync) assert_ok((*sync)(f->ia, &segment, 1));
  assert_ok(dat_lmr_free(lmr));
  munmap(region.for_va, 8192);
}

/* The consumer modifies memory, syncs all ranges in one call, and only then tells the peer, which reads. */
static void sync_rdma_read__a_peer_reads_what_was_written(void** state) {
  struct fixture* f = *state;
  static const size_t sizes[] = {1, 63, 64, 65, 4096, 10001, 1000000};
  for (unsigned int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      const size_t at = 7 + 13 * i;
      DAT_LMR_TRIPLET source[2] = {local(f, at, sizes[i]), local(f, at + sizes[i], 1)};
      DAT_LMR_TRIPLET sink = local(f, HALF + 3, sizes[i]);
      const DAT_RMR_TRIPLET from = remote(f, at, sizes[i]);
      fill(f->memory + at, sizes[i], round * 100 + (unsigned int)i);
      memset(f->memory + HALF, 0xee, sizes[i] + 64);
      assert_ok(dat_lmr_sync_rdma_read(f->ia, source, 2));
      assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &sink, cookie(i), &from, DAT_COMPLETION_DEFAULT_FLAG));
      expect_dto(f->active.request, i, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
      assert_true(is_filled(f->memory + HALF + 3, sizes[i], round * 100 + (unsigned int)i));
      assert_true(is_all(f->memory + HALF, 3, 0xee));
      assert_true(is_all(f->memory + HALF + 3 + sizes[i], 61, 0xee));
    }
  }
}

/* Local writes, sync; RDMA Write, then a Send that reports it; sync; read; local write to the same range. */
static void sync_rdma_write__what_a_peer_wrote_is_seen(void** state) {
  struct fixture* f = *state;
  static const size_t sizes[] = {1, 63, 64, 65, 4096, 10001, 1000000};
  for (unsigned int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      const size_t at = HALF + 5 + 13 * i;
      DAT_LMR_TRIPLET target = local(f, at, sizes[i]);
      DAT_LMR_TRIPLET source = local(f, 11, sizes[i]);
      DAT_LMR_TRIPLET note = local(f, MEMORY_SIZE - 8, 8);
      DAT_LMR_TRIPLET noted = local(f, MEMORY_SIZE - 16, 8);
      const DAT_RMR_TRIPLET to = remote(f, at, sizes[i]);
      memset(f->memory + at - 5, 0xdd, sizes[i] + 10);
      assert_ok(dat_lmr_sync_rdma_write(f->ia, &target, 1));
      fill(f->memory + 11, sizes[i], round * 100 + (unsigned int)i);
      assert_ok(dat_ep_post_recv(f->passive.ep, 1, &noted, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
      assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(i), &to, DAT_COMPLETION_SUPPRESS_FLAG));
      assert_ok(dat_ep_post_send(f->active.ep, 1, &note, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
      expect_dto(f->passive.recv, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
      assert_ok(dat_lmr_sync_rdma_write(f->ia, &target, 1));
      assert_true(is_filled(f->memory + at, sizes[i], round * 100 + (unsigned int)i));
      assert_true(is_all(f->memory + at - 5, 5, 0xdd));
      assert_true(is_all(f->memory + at + sizes[i], 5, 0xdd));
      expect_dto(f->active.request, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(lmr_sync_req__says_what_the_device_needs),
      IA_TEST(sync__num_segments_0_whatever_the_pointer),
      IA_TEST(sync__null_with_segments),
      IA_TEST(sync__invalid_handle),
      IA_TEST(sync__range_inside_and_outside_the_lmr),
      IA_TEST(sync__segment_that_wraps_the_address_space),
      IA_TEST(sync__segment_of_length_0_is_checked),
      IA_TEST(sync__unknown_lmr_context),
      IA_TEST(sync__lmrs_of_several_protection_zones_in_one_call),
      IA_TEST(sync__1000_segments_and_one_bad_one),
      IA_TEST(sync__memory_mapped_for_reading_only),
      CONNECTED_TEST(sync_rdma_read__a_peer_reads_what_was_written),
      CONNECTED_TEST(sync_rdma_write__what_a_peer_wrote_is_seen),
  };
  return RUN_TESTS(tests);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * LMRs marked with DAT_DAPPLE_MEM_PRIV_NONCOHERENT or DAT_DAPPLE_MEM_PRIV_PERSISTENT, on a device that is coherent:
 * their syncs maintain caches, those of others do not, and data is right.
 */
#include <dat2/dat_dapple_extensions.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/softroce/api/api.h"

#define MARKED (DAT_MEM_PRIV_ALL_FLAG | DAT_DAPPLE_MEM_PRIV_NONCOHERENT)
#define PERSISTENT (DAT_MEM_PRIV_ALL_FLAG | DAT_DAPPLE_MEM_PRIV_PERSISTENT)

typedef DAT_RETURN (*Sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN);

struct made {
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
};

static DAT_RETURN make(struct fixture* f, void* at, DAT_VLEN length, int privileges, DAT_VA_TYPE va_type,
                       struct made* out) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = at;
  return dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, length, f->pz, (DAT_MEM_PRIV_FLAGS)privileges, va_type,
                        &out->lmr, &out->lmr_context, &out->rmr_context, NULL, NULL);
}

static const char* attribute(const DAT_NAMED_ATTR* list, DAT_COUNT count, const char* name) {
  for (DAT_COUNT i = 0; i < count; ++i) {
    if (strcmp(list[i].name, name) == 0) return list[i].value;
  }
  return "missing";
}

static void provider__says_that_it_takes_the_flags(void** state) {
  const struct fixture* f = *state;
  const DAT_NAMED_ATTR* const list = f->provider.provider_specific_attr;
  const DAT_COUNT count = f->provider.num_provider_specific_attr;
  assert_string_equal(attribute(list, count, DAT_DAPPLE_ATTR_NONCOHERENT_LMR), "TRUE");
  assert_string_equal(attribute(list, count, DAT_DAPPLE_ATTR_PERSISTENT_LMR), "TRUE");
  /* This is the device's attribute, which the mark does not change. */
  assert_int_equal(f->provider.lmr_sync_req, needs_sync() ? DAT_TRUE : DAT_FALSE);
}

static void lmr_create__the_flags_are_kept_and_give_no_right(void** state) {
  static const int flags[] = {DAT_DAPPLE_MEM_PRIV_NONCOHERENT, DAT_DAPPLE_MEM_PRIV_PERSISTENT,
                              (int)DAT_DAPPLE_MEM_PRIV_NONCOHERENT | (int)DAT_DAPPLE_MEM_PRIV_PERSISTENT};
  struct fixture* f = *state;
  struct made made;
  DAT_LMR_PARAM param;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i) {
    assert_ok(make(f, f->memory, 4096, (int)DAT_MEM_PRIV_ALL_FLAG | flags[i], DAT_VA_TYPE_VA, &made));
    assert_ok(dat_lmr_query(made.lmr, DAT_LMR_FIELD_ALL, &param));
    assert_int_equal((int)param.mem_priv, (int)DAT_MEM_PRIV_ALL_FLAG | flags[i]);
    assert_ok(dat_lmr_free(made.lmr));

    assert_ok(make(f, f->memory, 4096, flags[i], DAT_VA_TYPE_VA, &made));
    assert_int_equal(made.rmr_context, 0);
    assert_ok(dat_lmr_free(made.lmr));
  }
  /* No LMR contains their neighbours. */
  assert_error(make(f, f->memory, 4096, DAT_MEM_PRIV_ALL_FLAG | 0x04000000, DAT_VA_TYPE_VA, &made),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  assert_error(make(f, f->memory, 4096, DAT_MEM_PRIV_ALL_FLAG | 0x00800000, DAT_VA_TYPE_VA, &made),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/*
 * The time of a sync: the least of several measurements, which nothing has disturbed. Each measures many syncs, because
 * an emulated clock is slow to read.
 */
static uint64_t least_ns(struct fixture* f, Sync sync, DAT_LMR_CONTEXT context) {
  DAT_LMR_TRIPLET segment = local(f, 0, MEMORY_SIZE);
  uint64_t least = UINT64_MAX;
  segment.lmr_context = context;
  for (int i = 0; i < 20; ++i) {
    uint64_t took;
    memset(f->memory, i, MEMORY_SIZE);
    took = now_ns();
    for (int k = 0; k < 32; ++k) assert_ok(sync(f->ia, &segment, 1));
    took = (now_ns() - took) / 32;
    if (took < least) least = took;
  }
  return least;
}

/* 65536 lines take noticeable time; a look-up and a fence do not. */
static void sync__maintains_marked_memory_only(void** state) {
  static const Sync both[] = {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write};
  struct fixture* f = *state;
  struct made made;
  if (needs_sync()) skip(); /* then the whole region is maintained */
  for (size_t i = 0; i < 4; ++i) {
    const Sync sync = both[i % 2];
    uint64_t marked, unmarked;
    assert_ok(make(f, f->memory, MEMORY_SIZE, i < 2 ? MARKED : PERSISTENT, DAT_VA_TYPE_VA, &made));
    unmarked = least_ns(f, sync, f->lmr_context);
    marked = least_ns(f, sync, made.lmr_context);
    print_message("4 MB: unmarked %u ns, marked %u ns\n", (unsigned)unmarked, (unsigned)marked);
    assert_true(marked > 4 * unmarked);
    assert_ok(dat_lmr_free(made.lmr));
  }
  assert_true(is_all(f->memory, MEMORY_SIZE, 19));
}

/* A peer's RDMA Write into marked memory, synced as the manual says, and an RDMA Read out of it. */
static void sync__around_a_peers_access(void** state) {
  struct fixture* f = *state;
  struct made made;
  DAT_LMR_TRIPLET near = local(f, 0, 5000);
  DAT_LMR_TRIPLET there;
  DAT_RMR_TRIPLET target = remote(f, HALF + 100, 5000);
  assert_ok(make(f, f->memory + HALF, HALF, MARKED, DAT_VA_TYPE_VA, &made));
  target.rmr_context = made.rmr_context;
  there = local(f, HALF + 100, 5000);
  there.lmr_context = made.lmr_context;

  fill(f->memory, 5000, 1);
  memset(f->memory + HALF, 0x55, HALF);
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &there, 1));
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &near, cookie(1), &target, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, 1);
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &there, 1));
  assert_true(is_filled(f->memory + HALF + 100, 5000, 1));
  assert_true(is_all(f->memory + HALF, 100, 0x55));
  assert_true(is_all(f->memory + HALF + 5100, 1000, 0x55));

  fill(f->memory + HALF + 100, 5000, 2);
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &there, 1));
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &near, cookie(2), &target, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->active.request, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory, 5000, 2));
}

static void sync__marked_and_zero_based(void** state) {
  SKIP_ON_IWARP();
  struct fixture* f = *state;
  struct made made;
  DAT_LMR_TRIPLET segment = local(f, 0, 100);
  assert_ok(make(f, f->memory + 8192, 4096, MARKED, DAT_VA_TYPE_ZB, &made));
  segment.lmr_context = made.lmr_context;
  segment.virtual_address = 4000;
  segment.segment_length = 96;
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &segment, 1));
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &segment, 1));
  segment.segment_length = 97;
  assert_error(dat_lmr_sync_rdma_write(f->ia, &segment, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(provider__says_that_it_takes_the_flags),
      IA_TEST(lmr_create__the_flags_are_kept_and_give_no_right),
      IA_TEST(sync__maintains_marked_memory_only),
      CONNECTED_TEST(sync__around_a_peers_access),
      IA_TEST(sync__marked_and_zero_based),
  };
  return RUN_TESTS(tests);
}

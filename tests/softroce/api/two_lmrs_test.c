/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Two LMRs over the same bytes: a peer's accesses through one are synced by the other. With DAPPLE_TEST_FORGET_SYNC in
 * the environment the sync after the RDMA Write is left out, and a device that is not coherent then shows wrong data.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/api/api.h"

#define FLAGS DAT_COMPLETION_DEFAULT_FLAG

/* The second LMR lies within the first, and does not begin at the border of a page or cache line. */
#define SECOND_AT (HALF + 100U)
#define SECOND_SIZE 5000U
/* The peer's Write lies within the second LMR. */
#define WRITTEN_AT (HALF + 200U)
#define WRITTEN 4000U

struct second {
  DAT_LMR_HANDLE lmr;
  DAT_RMR_TRIPLET written;
};

static struct second register_second(const struct fixture* f) {
  struct second second;
  DAT_REGION_DESCRIPTION region;
  memset(&second, 0, sizeof second);
  region.for_va = f->memory + SECOND_AT;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, SECOND_SIZE, f->pz, DAT_MEM_PRIV_ALL_FLAG,
                           DAT_VA_TYPE_VA, &second.lmr, NULL, &second.written.rmr_context, NULL, NULL));
  second.written.virtual_address = (uintptr_t)f->memory + WRITTEN_AT;
  second.written.segment_length = WRITTEN;
  return second;
}

static void rdma_write__through_one_is_synced_by_the_other(void** state) {
  struct fixture* f = *state;
  struct second second = register_second(f);
  DAT_LMR_TRIPLET source = local(f, 0, WRITTEN);
  for (unsigned int seed = 1; seed < 4; ++seed) {
    fill(f->memory, WRITTEN, seed);
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(seed), &second.written, FLAGS));
    expect_written(f, seed);
    if (!getenv("DAPPLE_TEST_FORGET_SYNC")) sync_for_write(f, WRITTEN_AT, WRITTEN);
    assert_true(is_filled(f->memory + WRITTEN_AT, WRITTEN, seed));
  }
  assert_ok(dat_lmr_free(second.lmr));
}

static void rdma_read__through_one_sees_what_the_other_synced(void** state) {
  struct fixture* f = *state;
  struct second second = register_second(f);
  DAT_LMR_TRIPLET sink = local(f, 0, WRITTEN);
  for (unsigned int seed = 1; seed < 4; ++seed) {
    fill(f->memory + WRITTEN_AT, WRITTEN, seed);
    sync_for_read(f, WRITTEN_AT, WRITTEN);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &sink, cookie(seed), &second.written, FLAGS));
    expect_dto(f->active.request, seed, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
    assert_true(is_filled(f->memory, WRITTEN, seed));
  }
  assert_ok(dat_lmr_free(second.lmr));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(rdma_write__through_one_is_synced_by_the_other),
      CONNECTED_TEST(rdma_read__through_one_sees_what_the_other_synced),
  };
  return RUN_TESTS(tests);
}

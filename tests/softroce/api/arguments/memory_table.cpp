// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Protection zones and memory regions.
#include <sys/mman.h>

#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

DAT_HANDLE made;
DAT_PZ_PARAM pz_param;
DAT_LMR_PARAM lmr_param;
DAT_LMR_CONTEXT lmr_context;
DAT_RMR_CONTEXT rmr_context;
DAT_VLEN size;
DAT_VADDR address;
char cookie_bytes[DAT_LMR_COOKIE_SIZE];

struct Regions {
  DAT_REGION_DESCRIPTION memory, null, unmapped, not_an_lmr, freed_lmr, foreign_lmr, lmr, shared, private_memory,
      no_cookie;
} regions;

void fill_regions(const World& w, void* shared_memory) {
  regions.memory.for_va = w.f.memory;
  regions.null.for_va = nullptr;
  regions.unmapped.for_va = reinterpret_cast<void*>(0x10000);
  regions.lmr.for_lmr_handle = w.good[kLmr];
  regions.not_an_lmr.for_lmr_handle = w.good[kPz];
  regions.freed_lmr.for_lmr_handle = w.freed[kLmr];
  regions.foreign_lmr.for_lmr_handle = w.foreign[kLmr];
  regions.shared.for_shared_memory = {shared_memory, &cookie_bytes};
  regions.private_memory.for_shared_memory = {w.f.memory, &cookie_bytes};
  regions.no_cookie.for_shared_memory = {shared_memory, nullptr};
}

// dat_lmr_create of one type of memory.
void add_lmr_create(Table& t, DAT_MEM_TYPE type, Argument region, Argument length) {
  t.add(FUNCTION(
      dat_lmr_create,
      {t.self(kIa), good(type).also("out of range", ONLY_20(3) ONLY_12(4)).also("negative", -1), std::move(region),
       std::move(length), t.further(kPz), good(DAT_MEM_PRIV_ALL_FLAG).also("out of range", 0x1000).also("negative", -1),
       ONLY_20(good(DAT_VA_TYPE_VA).also("out of range", 2).also("negative", -1), ) needed(&made),
       optional(&lmr_context), optional(&rmr_context), optional(&size), optional(&address)}));
}

// The two functions that take a list of segments.
Argument segments(const World& w) {
  static DAT_LMR_TRIPLET right, unknown, outside, past_the_end;
  const auto start = reinterpret_cast<DAT_VADDR>(w.f.memory);
  right = lmr_triplet(start, 4096, w.f.lmr_context);
  unknown = lmr_triplet(start, 4096, 0xdeadbeef);
  outside = lmr_triplet(start - 64, 4096, w.f.lmr_context);
  past_the_end = lmr_triplet(start + MEMORY_SIZE, 1, w.f.lmr_context);
  return needed(&right)
      .also("an unknown context", &unknown)
      .also("before the region", &outside)
      .also("behind the region", &past_the_end);
}

}  // namespace

void add_memory(Table& t) {
  const DAT_RETURN no_lmr = handle_error(DAT_INVALID_HANDLE_LMR);
  void* shared_memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fill_regions(t.w, shared_memory);

  t.add(FUNCTION(dat_pz_create, {t.self(kIa), needed(&made)}));
  t.add(FUNCTION(dat_pz_query, {t.self(kPz), mask(DAT_PZ_FIELD_ALL), needed(&pz_param)}));
  const auto length = [] {
    return good(4096).also("0", 0).also("wraps around", UINT64_MAX).also("huge", uint64_t{1} << 62);
  };
  add_lmr_create(t, DAT_MEM_TYPE_VIRTUAL,
                 good(&regions.memory).also("NULL", &regions.null).also("not mapped", &regions.unmapped), length());
  ONLY_12(add_lmr_create(t, DAT_MEM_TYPE_SO_VIRTUAL,
                         good(&regions.memory).also("NULL", &regions.null).also("not mapped", &regions.unmapped),
                         length());)
  add_lmr_create(t, DAT_MEM_TYPE_LMR,
                 good(&regions.lmr)
                     .also("of another kind", &regions.not_an_lmr, no_lmr)
                     .also("freed", &regions.freed_lmr, no_lmr)
                     .also("of another IA", &regions.foreign_lmr, no_lmr)
                     .also("NULL", &regions.null, no_lmr),
                 any(0));
  add_lmr_create(t, DAT_MEM_TYPE_SHARED_VIRTUAL,
                 good(&regions.shared)
                     .also("no cookie", &regions.no_cookie)
                     .also("not shared", &regions.private_memory, status(DAT_INVALID_STATE)),
                 good(4096).also("0", 0).also("wraps around", UINT64_MAX));
  t.add(FUNCTION(dat_lmr_query, {t.self(kLmr), mask(DAT_LMR_FIELD_ALL), needed(&lmr_param)}));
  // No provider can detect a list that is longer than its memory.
  t.add(FUNCTION(dat_lmr_sync_rdma_read, {t.self(kIa), segments(t.w), any(1)}));
  t.add(FUNCTION(dat_lmr_sync_rdma_write, {t.self(kIa), segments(t.w), any(1)}));
  t.add(FUNCTION(dat_lmr_free, {t.self(kLmr, t.w.read_only_lmr)}));
  t.add(FUNCTION(dat_pz_free, {t.self(kPz, t.w.free_pz).also("in use", t.w.f.pz, state(DAT_INVALID_STATE_PZ_IN_USE))}));
}

}  // namespace arguments

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dat_lmr_sync_rdma_read and dat_lmr_sync_rdma_write over the triplets of either API version.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/lmr_table.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {

using SyncFunction = int (*)(const dappledv_region_attr*, const iovec*, size_t);

// A list is worked on in blocks.
inline constexpr uint64_t kSegmentsOfBlock = LmrTable::Pins::kMax;

// Reads the consumer's memory of a block of segments, so that a list which is not mapped faults here, where no lock is
// held: the program may leave the call from its signal handler.
template <class Triplet>
void touch(std::span<const Triplet> block) {
  static_assert(kSegmentsOfBlock * sizeof(Triplet) <= 4096);
  const auto* begin = reinterpret_cast<const volatile char*>(block.data());
  (void)begin[0];
  (void)begin[block.size_bytes() - 1];
}

// Calls use(block) for each block of the list, in order, until it returns false.
template <class Triplet, class Use>
void for_each_block(const Triplet* segments, uint64_t count, Use use) {
  for (uint64_t at = 0; at < count; at += kSegmentsOfBlock) {
    const std::span<const Triplet> block(segments + at, std::min(count - at, kSegmentsOfBlock));
    touch(block);
    if (!use(block)) return;
  }
}

// Maintains the segments of a block that need it: all segments on a device that is not coherent, otherwise those in
// marked memory. The segments were checked. No sync of such memory fails: a registration or an open that could not sync
// was refused.
template <class Adapter, class Triplet>
void maintain_block(Adapter& ia, std::span<const Triplet> block, SyncFunction sync) {
  const bool all = ia.maintains_caches();
  iovec ranges[kSegmentsOfBlock];
  const dappledv_region_attr* coherence[kSegmentsOfBlock];
  size_t used = 0;
  LmrTable::Pins pins(ia.lmrs());
  {
    const auto guard = ia.lmrs().guard();
    for (const Triplet& segment : block) {
      const Lmr* lmr = pins.add(segment.lmr_context);
      // A region that another thread is freeing, which no program may do, needs nothing more.
      if (!lmr || !lmr->contains(segment.virtual_address, segment.segment_length)) continue;
      if (!all && !lmr->marked()) continue;
      // The device's maintenance includes that of memory which is marked non-coherent.
      coherence[used] = &ia.memory_coherence(!all && lmr->noncoherent(), lmr->persistent());
      ranges[used++] = {lmr->cpu_address(segment.virtual_address), static_cast<size_t>(segment.segment_length)};
    }
  }
  for (size_t at = 0; at < used;) {
    const size_t first = at;
    while (at < used && coherence[at] == coherence[first]) ++at;
    (void)sync(coherence[first], &ranges[first], at - first);
  }
}

// Looks up and checks every segment before it touches the first line: a list with one bad segment leaves memory as it
// was. The function allocates nothing, and holds no lock while it touches lines. A signal handler for a fault in the
// consumer's memory may leave it by longjmp(). Adapter is Ia, or a test's substitute.
template <class Adapter, class Triplet>
Result<> sync_segments(Adapter& ia, const Triplet* segments, uint64_t count, SyncFunction sync) {
  if (count == 0) return {};
  if (!segments) return fail(Type::kInvalidParameter, Subtype::kSegments);
  bool good = true;
  bool maintain = ia.maintains_caches();
  for_each_block(segments, count, [&](std::span<const Triplet> block) {
    const Lmr* lmr = nullptr;
    const auto guard = ia.lmrs().guard();
    for (const Triplet& segment : block) {
      if (!lmr || lmr->context() != segment.lmr_context) lmr = ia.lmrs().find(segment.lmr_context);
      good = lmr && lmr->contains(segment.virtual_address, segment.segment_length);
      if (!good) return false;
      maintain |= lmr->marked();
    }
    return true;
  });
  if (!good) return refuse(Subtype::kSegments, "a segment has bytes that are in no LMR of its lmr_context");
  if (maintain) {
    for_each_block(segments, count, [&](std::span<const Triplet> block) {
      maintain_block(ia, block, sync);
      return true;
    });
    if (ia.maintains_caches()) return {};
  }
  (void)sync(&ia.memory_coherence(), nullptr, 0);  // coherent: only orders accesses
  return {};
}

}  // namespace dapple::udapl

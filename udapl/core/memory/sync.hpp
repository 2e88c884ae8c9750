// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dat_lmr_sync_rdma_read and dat_lmr_sync_rdma_write over the triplets of either API version.
#pragma once

#include <sys/uio.h>

#include <cstdint>

#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

using SyncFunction = int (*)(const dappledv_region_attr*, const iovec*, size_t);

// Passes the segments that need maintenance on in batches: all segments on a device that is not coherent, otherwise
// those in marked memory. Every segment was looked up, is inside its region and pinned; lmr is the region of any of
// them. No sync of such memory fails: a registration or an open that could not sync was refused.
template <class Adapter, class Triplet>
void maintain_segments(Adapter& ia, const Triplet* segments, uint64_t count, const Lmr* lmr, SyncFunction sync) {
  constexpr size_t kBatch = 64;
  const bool all = ia.maintains_caches();
  const dappledv_region_attr* coherence = nullptr;  // of the batch
  iovec ranges[kBatch];
  size_t used = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (lmr->context() != segments[i].lmr_context) lmr = &ia.lmrs().pinned(segments[i].lmr_context);
    if (!all && !lmr->marked()) continue;
    // The device's maintenance includes that of memory which is marked non-coherent.
    const dappledv_region_attr* const wanted = &ia.memory_coherence(!all && lmr->noncoherent(), lmr->persistent());
    if (used && wanted != coherence) {
      (void)sync(coherence, ranges, used);
      used = 0;
    }
    coherence = wanted;
    ranges[used++] = {lmr->cpu_address(segments[i].virtual_address), static_cast<size_t>(segments[i].segment_length)};
    if (used == kBatch) {
      (void)sync(coherence, ranges, used);
      used = 0;
    }
  }
  if (used) (void)sync(coherence, ranges, used);
}

// Looks up and checks every segment before it touches the first line: a list with one bad segment leaves memory as it
// was. Each segment costs one look-up. The function allocates nothing, and holds no lock while it touches lines.
// Adapter is Ia, or a test's substitute.
template <class Adapter, class Triplet>
Result<> sync_segments(Adapter& ia, const Triplet* segments, uint64_t count, SyncFunction sync) {
  if (count == 0) return {};
  if (!segments) return fail(Type::kInvalidParameter, Subtype::kSegments);
  const Lmr* lmr = nullptr;
  bool maintain = ia.maintains_caches();
  {
    const auto guard = ia.lmrs().guard();
    for (uint64_t i = 0; i < count; ++i) {
      const Triplet& segment = segments[i];
      if (!lmr || lmr->context() != segment.lmr_context) lmr = ia.lmrs().find(segment.lmr_context);
      if (!lmr || !lmr->contains(segment.virtual_address, segment.segment_length)) {
        return fail(Type::kInvalidParameter, Subtype::kSegments);
      }
      maintain |= lmr->marked();
    }
    for (uint64_t i = 0; maintain && i < count; ++i) ia.lmrs().pin(segments[i].lmr_context);
  }
  if (maintain) {
    maintain_segments(ia, segments, count, lmr, sync);
    for (uint64_t i = 0; i < count; ++i) ia.lmrs().unpin(segments[i].lmr_context);
    if (ia.maintains_caches()) return {};
  }
  (void)sync(&ia.memory_coherence(), nullptr, 0);  // coherent: only orders accesses
  return {};
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Cache maintenance for the buffers of work requests on a device that is not cache-coherent.
#pragma once

#include <sys/uio.h>

#include <span>

#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/lmr.hpp"

namespace dapple::udapl {

// The segment with its address for the CPU, which differs in a zero-based region. The result is empty if the segment is
// in no region: the device will refuse it, so it needs no maintenance.
inline ibv_sge cpu_segment(Ia& ia, const ibv_sge& segment) {
  const auto guard = ia.lmrs().guard();
  const Lmr* lmr = ia.lmrs().find(segment.lkey);
  if (!lmr || !lmr->contains(segment.addr, segment.length)) return {};
  return {reinterpret_cast<uint64_t>(lmr->cpu_address(segment.addr)), segment.length, segment.lkey};
}

// segments: the results of cpu_segment().
inline void maintain(const Ia& ia, std::span<const ibv_sge> segments, bool for_cpu) {
  for (const ibv_sge& segment : segments) {
    if (segment.length == 0) continue;
    const iovec range{reinterpret_cast<void*>(segment.addr), segment.length};
    (void)(for_cpu ? dappledv_sync_for_cpu : dappledv_sync_for_device)(&ia.memory_coherence(), &range, 1);
  }
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/sync.hpp"

#include <errno.h>

#include "provider/device/dmabuf.hpp"
#include "provider/device/machine/persistence.hpp"

namespace dapple::provider {
namespace {

// The wait for maintenance orders all that a CPU-side device needs. No instruction of user space suffices for a cache
// on the I/O side; a full barrier is the strongest one.
void finish(const coherence::BackEnd& back_end, dappledv_coherence coherence) noexcept {
  back_end.complete_maintenance();
  if (coherence == DAPPLEDV_COHERENCE_NONCOHERENT_IO) back_end.full_barrier();
}

}  // namespace

void sync_for_device(const coherence::BackEnd& back_end, dappledv_coherence coherence, const iovec* ranges,
                     size_t num_ranges) noexcept {
  if (coherence == DAPPLEDV_COHERENCE_COHERENT) {
    back_end.order_before_device_reads();
    return;
  }
  if (!back_end.cpu.can_clean || coherence == DAPPLEDV_COHERENCE_BOUNCED) {
    back_end.full_barrier();
    return;
  }
  for (size_t i = 0; i < num_ranges; ++i) back_end.clean(ranges[i].iov_base, ranges[i].iov_len);
  finish(back_end, coherence);
}

void sync_for_cpu(const coherence::BackEnd& back_end, dappledv_coherence coherence, const iovec* ranges,
                  size_t num_ranges) noexcept {
  if (coherence == DAPPLEDV_COHERENCE_COHERENT) {
    back_end.order_after_device_writes();
    return;
  }
  if (!back_end.cpu.can_clean_invalidate || coherence == DAPPLEDV_COHERENCE_BOUNCED) {
    back_end.full_barrier();
    return;
  }
  // The load that showed the device's write must be done before a line is dropped. Otherwise the line could return with
  // old data.
  back_end.order_before_maintenance();
  for (size_t i = 0; i < num_ranges; ++i) back_end.clean_invalidate(ranges[i].iov_base, ranges[i].iov_len);
  finish(back_end, coherence);
}

namespace {

// A region that is a dma-buf or persistent. Out of line, because saving registers for it would cost every sync 2 ns.
[[gnu::noinline]] int sync_special(const coherence::BackEnd& back_end, SyncDirection direction,
                                   const dappledv_region_attr& region, const iovec* ranges,
                                   size_t num_ranges) noexcept {
  int error = 0;
  if (region.dmabuf) {
    // The dma-buf may be mapped in any way. The barrier also empties the CPU's buffers for a write-combining mapping.
    back_end.full_barrier();
    error = sync_dmabuf(region.dmabuf_fd, direction);
  } else {
    dappledv_region_attr memory = region;
    memory.persistence = DAPPLEDV_PERSISTENCE_UNSPECIFIED;
    error = sync_region(back_end, direction, memory, ranges, num_ranges);
  }
  if (region.persistence != DAPPLEDV_PERSISTENCE_UNSPECIFIED) {
    persist_ranges(back_end, region.persistence, ranges, num_ranges);
  }
  return error;
}

}  // namespace

// Flat: a barrier empties the CPU's pipeline, so calls between two barriers are not hidden behind other work.
[[gnu::flatten]] int sync_region(const coherence::BackEnd& back_end, SyncDirection direction,
                                 const dappledv_region_attr& region, const iovec* ranges, size_t num_ranges) noexcept {
  if (region.dmabuf || region.persistence != DAPPLEDV_PERSISTENCE_UNSPECIFIED) [[unlikely]] {
    return sync_special(back_end, direction, region, ranges, num_ranges);
  }
  if (direction == SyncDirection::kForDevice) {
    sync_for_device(back_end, region.coherence, ranges, num_ranges);
  } else {
    sync_for_cpu(back_end, region.coherence, ranges, num_ranges);
  }
  return region.sync_supported ? 0 : EOPNOTSUPP;
}

}  // namespace dapple::provider

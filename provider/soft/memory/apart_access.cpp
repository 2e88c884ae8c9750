// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/apart_access.hpp"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>

#include <cassert>
#include <cerrno>

#include "provider/common/host_guards.hpp"
#include "provider/soft/memory/on_demand_bytes.hpp"

namespace dapple::soft {
namespace {

constexpr uint32_t kWrites = kRemoteChanges | roce::kLocalWrite;

// The bytes of a null region, as many as are used at once. Nobody writes the zeros, and nobody reads the sink.
constexpr size_t kNullBytes = 64 * 1024;
std::byte zeros[kNullBytes];
std::byte sink[kNullBytes];

}  // namespace

bool MemoryTable::ApartAccess::is_allowed(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length,
                                          uint32_t access, By by) {
  if (entry.domain != kApart || entry.own_domain != who.domain || (entry.access & access) != access) return false;
  if (by == By::kOwner ? entry.kind != Kind::kRegion : entry.region_kind == RegionKind::kNull) return false;
  if (entry.kind == Kind::kWindow2 && entry.qpn != who.qpn) return false;
  return within(address, length, entry.start, entry.length);
}

MemoryTable::ApartAccess::ApartAccess(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length,
                                      uint32_t access, By by)
    : is_write_((access & kWrites) != 0) {
  if (!is_allowed(entry, who, address, length, access, by)) return;
  most_ = length;
  switch (entry.region_kind) {
    case RegionKind::kNull:
      memory_ = is_write_ ? sink : zeros;
      most_ = kNullBytes;
      return;
    case RegionKind::kOnDemand:
      if (OnDemandBytes(entry.pages).bring_in(entry.at(address), length, is_write_)) memory_ = entry.at(address);
      return;
    case RegionKind::kDmabuf:
      memory_ = entry.at(address);
      dmabuf_ = entry.dmabuf;
      tell_exporter(DMA_BUF_SYNC_START);
      return;
    case RegionKind::kPlain:
    case RegionKind::kGpu:
      break;
  }
  assert(false);
}

MemoryTable::ApartAccess::~ApartAccess() {
  if (dmabuf_ >= 0) tell_exporter(DMA_BUF_SYNC_END);
}

void MemoryTable::ApartAccess::tell_exporter(uint64_t end_flag) const {
  const ErrnoGuard keep;
  dma_buf_sync sync = {.flags = end_flag | (is_write_ ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ)};
  while (ioctl(dmabuf_, DMA_BUF_IOCTL_SYNC, &sync) != 0 && (errno == EINTR || errno == EAGAIN)) {
  }
}

}  // namespace dapple::soft

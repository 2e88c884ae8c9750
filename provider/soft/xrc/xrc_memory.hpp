// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory that the peers of a receiving queue pair of XRC reach: that of the shared receive queue which a packet
// names. The queue may belong to another context than the queue pair, and then has other keys.
#pragma once

#include "provider/soft/xrc/target_memory.hpp"
#include "provider/soft/xrc/xrc_receives.hpp"

namespace dapple::soft {

// Guarded by the queue pair's lock.
class XrcMemory final : public TargetMemory {
 public:
  explicit XrcMemory(XrcReceives& receives) : receives_(receives) {}

  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override;

 private:
  XrcReceives& receives_;
};

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of a queue pair whose messages may begin with a header that no memory gets.
#pragma once

#include "provider/soft/memory/memory_layer.hpp"
#include "provider/soft/tag_matching/tag_receives.hpp"

namespace dapple::soft {

// Guarded by the queue pair's lock.
class TagMemory final : public MemoryLayer {
 public:
  TagMemory(roce::Memory& below, const TagReceives& receives) : MemoryLayer(below), receives_(receives) {}

  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault scatter_loan(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                           const roce::Loan& loan) override;

 private:
  const TagReceives& receives_;
};

}  // namespace dapple::soft

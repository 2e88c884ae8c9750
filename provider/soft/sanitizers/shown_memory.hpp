// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory table of a program with a sanitizer: the sanitizer sees each access of the device, as if the program had
// made it. The queue pairs of other programs use the table itself, so they pay nothing.
#pragma once

#include "provider/soft/memory/memory_layer.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

class ShownMemory final : public MemoryLayer {
 public:
  ShownMemory(MemoryTable& table, Sanitizer& sanitizer) : MemoryLayer(table), table_(table), sanitizer_(sanitizer) {}

  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault atomic_write(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t value) override;
  roce::Fault gather(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, std::byte* to,
                     size_t size) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault scatter_loan(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                           const roce::Loan& loan) override;

 private:
  class Look;
  void look(const DeviceAccess& access, const roce::RemoteRange& range, uint32_t right);
  void look(const DeviceAccess& access, std::span<const roce::Segment> segments, uint64_t offset, size_t size);

  MemoryTable& table_;
  Sanitizer& sanitizer_;
};

}  // namespace dapple::soft

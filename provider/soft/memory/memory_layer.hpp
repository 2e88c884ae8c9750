// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "roce/host/ports.hpp"

namespace dapple::soft {

// Between a queue pair's engine and its memory: passes everything on but loans, which a layer that looks at stores
// would not see, so that packets bring their bytes. A layer that looks at some accesses overrides their functions.
class MemoryLayer : public roce::Memory {
 public:
  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override {
    return below_.check_remote(who, range, access);
  }
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override {
    return below_.write(who, range, from);
  }
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override {
    return below_.read(who, range, to);
  }
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override {
    return below_.compare_swap(who, rkey, address, compare, swap, original);
  }
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add,
                        uint64_t& original) override {
    return below_.fetch_add(who, rkey, address, add, original);
  }
  roce::Fault atomic_write(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t value) override {
    return below_.atomic_write(who, rkey, address, value);
  }
  roce::Fault flush(roce::Accessor who, const roce::RemoteRange& range, uint32_t type) override {
    return below_.flush(who, range, type);
  }
  roce::Fault check_local(roce::Accessor who, std::span<const roce::Segment> segments, bool write) override {
    return below_.check_local(who, segments, write);
  }
  roce::Fault gather(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, std::byte* to,
                     size_t size) override {
    return below_.gather(who, segments, offset, to, size);
  }
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override {
    return below_.scatter(who, segments, offset, from, size);
  }
  roce::Fault bind_window(roce::Accessor who, const roce::WindowBind& bind) override {
    return below_.bind_window(who, bind);
  }
  roce::Fault invalidate_local(roce::Accessor who, uint32_t rkey) override {
    return below_.invalidate_local(who, rkey);
  }
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override {
    return below_.invalidate_remote(who, rkey);
  }

 protected:
  explicit MemoryLayer(roce::Memory& below) : below_(below) {}
  ~MemoryLayer() = default;

  roce::Memory& below_;
};

}  // namespace dapple::soft

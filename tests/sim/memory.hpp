// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A node's memory with its keys, and observers of the accesses of queue pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "roce/host/ports.hpp"

namespace dapple::sim {

enum class AtomicKind : uint8_t { kCompareSwap, kFetchAdd, kWrite };

struct AtomicAccess {
  AtomicKind kind{};
  uint64_t address = 0;
  uint64_t operand = 0;  // the operand of swap or add, or the data to write
  uint64_t compare = 0;
  uint64_t original = 0;
};

// Called after each successful access.
class MemoryWatcher {
 public:
  virtual void remote_written(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void remote_read(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void remote_atomic(uint32_t qpn, const AtomicAccess& access) = 0;
  virtual void remote_flushed(uint32_t qpn, const roce::RemoteRange& range) = 0;
  virtual void gathered(uint32_t qpn, std::span<const roce::Segment> segments) = 0;
  virtual void scattered(uint32_t qpn) = 0;
  // Asked before each access of a peer: true if the memory's owner does not answer now.
  virtual bool is_late(uint32_t qpn) = 0;

 protected:
  ~MemoryWatcher() = default;
};

struct Key {
  uint32_t key = 0;
  uint32_t domain = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  bool live = true;
  bool died = false;  // was invalid at some time; it may be live again
  bool window = false;
  uint32_t qpn = 0;  // the key of a window
};

class SimMemory final : public roce::Memory {
 public:
  // Places `bytes`, whose contents are arbitrary, at address `base`.
  SimMemory(uint64_t base, std::span<std::byte> bytes, MemoryWatcher& watcher)
      : base_(base), bytes_(bytes), watcher_(watcher) {}

  // Allocates memory for the whole run. 0 if none is left.
  uint64_t allocate(size_t size);
  uint64_t base() const { return base_; }
  uint64_t size() const { return bytes_.size(); }
  // The range must lie in allocated memory.
  std::byte* at(uint64_t address) { return bytes_.data() + (address - base_); }

  // Keys count up in steps of 256, as if the low byte were random.
  uint32_t add_key(const Key& key);
  const Key* find(uint32_t key) const;
  void revoke(uint32_t key);
  // While set, accesses by a remote key find the memory unreachable.
  bool broken = false;

  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault atomic_write(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t value) override;
  roce::Fault flush(roce::Accessor who, const roce::RemoteRange& range, uint32_t type) override;
  roce::Fault check_local(roce::Accessor who, std::span<const roce::Segment> segments, bool write) override;
  roce::Fault gather(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, std::byte* to,
                     size_t size) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault bind_window(roce::Accessor who, const roce::WindowBind& bind) override;
  roce::Fault invalidate_local(roce::Accessor who, uint32_t rkey) override;
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override;

 private:
  Key* find_live(uint32_t key, uint32_t domain);
  roce::Fault check_atomic(roce::Accessor who, uint32_t rkey, uint64_t address, uint32_t access);

  uint64_t base_;
  std::span<std::byte> bytes_;
  size_t used_ = 0;
  std::vector<Key> keys_;
  MemoryWatcher& watcher_;
};

}  // namespace dapple::sim

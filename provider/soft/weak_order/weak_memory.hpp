// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// order=weak of DAPPLE_FAULTS, at the target: the bytes of an RDMA Write become visible late and in any order, those of
// a Read may be fetched long before its answer leaves, and an atomic is not atomic with the accesses of the CPU.
#pragma once

#include <memory>

#include "provider/soft/memory/memory_layer.hpp"
#include "provider/soft/weak_order/late_atomic.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {

// One queue pair's view of memory. While holds(true), some pieces of a Write are kept until place_held(). An aligned
// word of eight bytes stays whole. The seed selects them. Under the queue pair's lock; peers' packets are executed
// under the lock of receiving.
class WeakMemory final : public MemoryLayer {
 public:
  // Null without memory for the bytes.
  static std::unique_ptr<WeakMemory> create(roce::Memory& below, uint64_t seed);
  // Bytes that are still kept are lost: the queue pair has been destroyed.
  ~WeakMemory();
  WeakMemory(const WeakMemory&) = delete;
  WeakMemory& operator=(const WeakMemory&) = delete;

  // From now on Writes may leave pieces behind, or leave none.
  void holds(bool may_hold) { may_hold_ = may_hold; }
  bool has_held() const { return count_ != 0 || late_atomic.is_of(this); }
  // Another Write arrives. Its bytes become visible after all that waits: kept pieces, or an atomic that has not
  // stored.
  void keep_in_order() { is_in_order_ = true; }
  // Stores all that was kept. A piece whose memory is no longer registered is lost, as on a NIC.
  void place_held();
  // The queue pair leaves its state; its Reads are not answered.
  void forget_early() { early_ = {}; }

  // The check of a Read, when it arrives.
  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  // The store may come with place_held(). No other atomic of a queue pair of this process comes in between.
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  // These may end a key, so kept bytes are placed first.
  roce::Fault bind_window(roce::Accessor who, const roce::WindowBind& bind) override;
  roce::Fault invalidate_local(roce::Accessor who, uint32_t rkey) override;

 private:
  WeakMemory(roce::Memory& below, uint64_t seed) : MemoryLayer(below), random_(seed) {}

  static constexpr size_t kRoom = 16 * 1024;
  static constexpr size_t kMaxEarly = 4096;
  static constexpr size_t kMaxHeld = 64;
  struct Held {
    roce::Accessor who;
    roce::RemoteRange range;
    size_t at = 0;  // in bytes_
  };

  // False without room: then the piece is to be placed at once.
  bool hold(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from);
  void assert_consistent() const;

  RandomSequence random_;
  bool may_hold_ = false;
  Held held_[kMaxHeld];
  size_t count_ = 0;
  bool is_in_order_ = false;            // a piece waits for all that is kept
  std::unique_ptr<std::byte[]> bytes_;  // kept ones; behind kRoom those that were fetched early
  size_t used_ = 0;
  roce::RemoteRange early_ = {};  // whose bytes were fetched early; no length: of none
};

}  // namespace dapple::soft

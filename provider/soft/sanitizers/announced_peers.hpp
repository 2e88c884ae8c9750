// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --check=strict: to ThreadSanitizer the peer of each queue pair is a thread, too, which writes and reads
// this program's memory. Before the peer's access come the accesses of a thread before it registers, connects or posts.
// After it come those of a thread that has polled the completion of a message. A program may also learn in other ways
// that its peer is done, by TCP or by a look at the memory, so this is not for all programs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/sanitizers/thread_sanitizer.hpp"

namespace dapple::soft {

// All functions are called inside of the plug-in. Safe from any thread.
class AnnouncedPeers {
 public:
  // Null unless the program has ThreadSanitizer and runs under --check=strict.
  static AnnouncedPeers* get() { return peers.load(std::memory_order_acquire); }
  // Called once, before the program's first verb, under --check=strict.
  static void start();

  // This thread has told peers about its memory, perhaps.
  void told();
  // Before the peer of this queue pair accesses the memory.
  void access(uint32_t qpn, void* memory, size_t size, bool writes);
  // This thread has polled the completion of a message.
  void received();
  // Around an access of one of the device's threads, by that thread. Devices do not race with each other.
  void begin_device_access() { sanitizer_.acquire(&done_); }
  void end_device_access() { sanitizer_.release(&told_); }

 private:
  explicit AnnouncedPeers(const ThreadSanitizer& sanitizer) : sanitizer_(sanitizer) {}
  static std::atomic<AnnouncedPeers*> peers;

  // The peers of some queue pairs.
  struct Lane {
    BiasedMutex mutex{LockRank::kAnnouncedPeers};  // not seen by the sanitizer
    ThreadSanitizer::Fiber fiber = nullptr;
    uint32_t qpn = 0;
  };
  void name(Lane& lane, uint32_t qpn) const;

  static constexpr uint32_t kLanes = 64;
  const ThreadSanitizer& sanitizer_;
  Lane lanes_[kLanes];
  // The sanitizer knows them by their addresses.
  alignas(8) uint64_t told_ = 0;
  alignas(8) uint64_t done_ = 0;
};

}  // namespace dapple::soft

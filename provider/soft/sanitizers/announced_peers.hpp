// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --check=strict: to ThreadSanitizer the peer of each queue pair is a thread, too, which writes and reads
// this program's memory. Before the peer's access come the accesses of a thread before it registers, connects or posts.
// After it come those of a thread that has polled the completion of a message. A program may also learn in other ways
// that its peer is done, by TCP or by a look at the memory, so this is not for all programs.
//
// Peers' atomics are one more thread, whose accesses are atomic: they race with plain accesses of the program alone.
// After them also come the accesses of a thread that has polled a completion of a queue pair with atomics, or has seen
// the new value by an atomic access. A program knows nothing by TCP of a peer in its own process that the sanitizer
// does not know, too. So the atomics of such a peer are announced under --check, without =strict.
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
  // Null unless the program has ThreadSanitizer and runs under --check.
  static AnnouncedPeers* get() { return peers.load(std::memory_order_acquire); }
  // Called once, before the program's first verb, under --check. `strict`: peers of other processes count, and Writes
  // and Reads.
  static void start(bool strict);
  bool is_strict() const { return strict_; }

  // This thread has told peers about its memory, perhaps.
  void told();
  // Before the peer of this queue pair accesses the memory.
  void access(uint32_t qpn, void* memory, size_t size, bool writes);
  // Before a peer's atomic changes the word, which is there.
  void update(void* word);
  // This thread has polled the completion of a message.
  void received();
  // This thread has polled a completion of a queue pair that posts atomics.
  void polled_after_atomic();
  // Around an access of one of the device's threads, by that thread. Devices do not race with each other.
  void begin_device_access() {
    sanitizer_.acquire(&done_);
    sanitizer_.acquire(&updated_);
  }
  void end_device_access() { sanitizer_.release(&told_); }

 private:
  AnnouncedPeers(const ThreadSanitizer& sanitizer, bool strict)
      : sanitizer_(sanitizer), strict_(strict), maker_(sanitizer.make_fiber()) {}
  static std::atomic<AnnouncedPeers*> peers;

  // The peers of some queue pairs.
  struct Lane {
    BiasedMutex mutex{LockRank::kAnnouncedPeers};  // not seen by the sanitizer
    ThreadSanitizer::Fiber fiber = nullptr;
    uint32_t qpn = 0;
  };
  ThreadSanitizer::Fiber make_fiber();
  void name(Lane& lane, uint32_t qpn) const;

  static constexpr uint32_t kLanes = 64;
  const ThreadSanitizer& sanitizer_;
  const bool strict_;
  // To the sanitizer all that a thread has done comes before the fibers that it makes. This one makes them, and has
  // seen nothing of the program since its first verb.
  const ThreadSanitizer::Fiber maker_;
  BiasedMutex maker_mutex_{LockRank::kPeersMaker};  // not seen by the sanitizer
  Lane lanes_[kLanes];
  Lane atomics_;
  // The sanitizer knows them by their addresses.
  alignas(8) uint64_t told_ = 0;
  alignas(8) uint64_t done_ = 0;
  alignas(8) uint64_t updated_ = 0;
};

}  // namespace dapple::soft

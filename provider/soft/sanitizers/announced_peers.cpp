// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/announced_peers.hpp"

#include <stdio.h>

namespace dapple::soft {
namespace {

// The report of a race names a place in code for each access. A peer's access has no place in this process, so the
// report names one of these functions.
[[gnu::noinline, gnu::used]] void rdma_write_of_a_peer() {}
[[gnu::noinline, gnu::used]] void rdma_read_of_a_peer() {}

[[gnu::noinline]] void atomic_of_a_peer(const ThreadSanitizer& sanitizer, void* word) {
  sanitizer.update(static_cast<uint64_t*>(word));
  // The call above returns to this function.
  asm volatile("" ::: "memory");
}

// The sanitizer takes the place for the return address of a call.
void* place_in(void (*function)()) {
  return reinterpret_cast<char*>(function) + 1;
}

}  // namespace

constinit std::atomic<AnnouncedPeers*> AnnouncedPeers::peers{nullptr};

void AnnouncedPeers::start(bool strict) {
  const ThreadSanitizer* sanitizer = ThreadSanitizer::of_program();
  // Threads that outlive main() use it.
  if (sanitizer != nullptr) peers.store(new AnnouncedPeers(*sanitizer, strict), std::memory_order_release);
}

ThreadSanitizer::Fiber AnnouncedPeers::make_fiber() {
  const BiasedLock lock(maker_mutex_);
  const ThreadSanitizer::On on(sanitizer_, maker_, {});
  return sanitizer_.make_fiber();
}

void AnnouncedPeers::told() {
  const ThreadSanitizer::Heard heard(sanitizer_);
  sanitizer_.release(&told_);
}

void AnnouncedPeers::received() {
  const ThreadSanitizer::Heard heard(sanitizer_);
  sanitizer_.acquire(&done_);
  sanitizer_.acquire(&updated_);
}

void AnnouncedPeers::polled_after_atomic() {
  const ThreadSanitizer::Heard heard(sanitizer_);
  sanitizer_.acquire(&updated_);
}

void AnnouncedPeers::name(Lane& lane, uint32_t qpn) const {
  if (lane.qpn == qpn) return;
  char name[32];
  snprintf(name, sizeof name, "peer of QP 0x%x", qpn);
  sanitizer_.name(lane.fiber, lane.qpn == 0 ? name : "peers of several QPs");
  lane.qpn = qpn;
}

void AnnouncedPeers::access(uint32_t qpn, void* memory, size_t size, bool writes) {
  if (!strict_) return;
  Lane& lane = lanes_[qpn % kLanes];
  const BiasedLock lock(lane.mutex);
  {
    const ThreadSanitizer::Heard heard(sanitizer_);
    if (lane.fiber == nullptr) lane.fiber = make_fiber();
    name(lane, qpn);
  }
  const ThreadSanitizer::On on(sanitizer_, lane.fiber, {});
  sanitizer_.acquire(&told_);
  sanitizer_.acquire(&updated_);
  if (writes) {
    sanitizer_.write(memory, size, place_in(rdma_write_of_a_peer));
  } else {
    sanitizer_.read(memory, size, place_in(rdma_read_of_a_peer));
  }
  sanitizer_.release(&done_);
}

void AnnouncedPeers::update(void* word) {
  const BiasedLock lock(atomics_.mutex);
  if (atomics_.fiber == nullptr) {
    const ThreadSanitizer::Heard heard(sanitizer_);
    atomics_.fiber = make_fiber();
    sanitizer_.name(atomics_.fiber, "atomics of peers");
  }
  const ThreadSanitizer::On on(sanitizer_, atomics_.fiber, {});
  sanitizer_.acquire(&told_);
  sanitizer_.acquire(&done_);
  atomic_of_a_peer(sanitizer_, word);
  sanitizer_.release(&updated_);
}

}  // namespace dapple::soft

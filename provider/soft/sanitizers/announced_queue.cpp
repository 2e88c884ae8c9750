// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/announced_queue.hpp"

#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <new>

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/locks/own_code.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "provider/soft/sanitizers/thread_sanitizer.hpp"

namespace dapple::soft {
namespace {

constexpr uint32_t kLanes = 256;  // gcc's sanitizer needs 0.8 MB for each fiber
constexpr uint32_t kTokens = 64;  // of a lane; a request that comes later shares one, and its completion covers more
constexpr size_t kMaxBytes = 1 << 20;  // of a request: the sanitizer's time is limited, too
constexpr int kFrames = 24;

// A fiber and the queues that use it.
struct Lane {
  BiasedMutex mutex{LockRank::kAnnouncedLane};  // not seen by the sanitizer
  ThreadSanitizer::Fiber fiber = nullptr;
  uint32_t queues = 0;
  uint32_t posts = 0;
  std::atomic<bool> has_atomics{false};  // some have been posted
  char posted = 0;                       // releases of the posting threads
  alignas(8) uint64_t done[kTokens]{};   // releases of the fiber; the sanitizer knows them by their addresses
};

Lane lanes[kLanes];
BiasedMutex lanes_mutex{LockRank::kAnnouncedLanes};
uint32_t next_lane = 0;

// An unused lane, from next_lane on; next_lane if all are in use.
uint32_t choose_lane() {
  assert_held(lanes_mutex);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t lane = (next_lane + i) % kLanes;
    if (lanes[lane].queues == 0) return lane;
  }
  return next_lane;
}

// The callers of this thread outside of the plug-in, the innermost first.
class Callers {
 public:
  Callers() {
    count_ = static_cast<size_t>(std::max(backtrace(frames_, kFrames), 0));
    // The sanitizer's own backtrace() comes first.
    while (first_ < count_ && !is_own_code(frames_[first_])) ++first_;
    while (first_ < count_ && is_own_code(frames_[first_])) ++first_;
  }
  void* innermost() const { return first_ < count_ ? frames_[first_] : nullptr; }
  std::span<void* const> others() const {
    return std::span<void* const>(frames_, count_).subspan(std::min(first_ + 1, count_));
  }

 private:
  void* frames_[kFrames];
  size_t count_;
  size_t first_ = 0;
};

}  // namespace

class AnnouncedQueue::Use final : public MemoryTable::Borrower {
 public:
  Use(const ThreadSanitizer& sanitizer, bool writes, void* caller)
      : sanitizer_(sanitizer), writes_(writes), caller_(caller) {}
  bool use(std::byte* memory, size_t, size_t size) override {
    if (writes_) {
      sanitizer_.write(memory, size, caller_);
    } else {
      sanitizer_.read(memory, size, caller_);
    }
    return true;
  }
  bool pass_gpu() override { return true; }

 private:
  const ThreadSanitizer& sanitizer_;
  const bool writes_;
  void* const caller_;
};

std::unique_ptr<AnnouncedQueue> AnnouncedQueue::make(MemoryTable& memory, roce::Accessor who, const char* name) {
  const ThreadSanitizer* sanitizer = ThreadSanitizer::of_program();
  if (sanitizer == nullptr) return nullptr;
  const BiasedLock lock(lanes_mutex);
  const uint32_t index = choose_lane();
  std::unique_ptr<AnnouncedQueue> made(new (std::nothrow) AnnouncedQueue(memory, who, index));
  if (made == nullptr) return nullptr;
  next_lane = (index + 1) % kLanes;
  Lane& lane = lanes[index];
  const BiasedLock lane_lock(lane.mutex);
  const ThreadSanitizer::Heard heard(*sanitizer);
  if (lane.fiber == nullptr) lane.fiber = sanitizer->make_fiber();
  sanitizer->name(lane.fiber, lane.queues++ == 0 ? name : "several queue pairs");
  return made;
}

AnnouncedQueue::~AnnouncedQueue() {
  end();
  const BiasedLock lock(lanes_mutex);
  assert(lanes[lane_].queues > 0);
  --lanes[lane_].queues;
}

uint16_t AnnouncedQueue::post(std::span<const roce::Segment> segments, bool device_writes) {
  const ThreadSanitizer& sanitizer = *ThreadSanitizer::of_program();
  uint64_t size = 0;
  for (const roce::Segment& segment : segments) size += segment.length;
  const Callers callers;
  AnnouncedPeers* peers = AnnouncedPeers::get();
  if (peers != nullptr) peers->told();
  Lane& lane = lanes[lane_];
  const BiasedLock lock(lane.mutex);
  assert(lane.fiber != nullptr && lane.queues > 0);
  const uint32_t token = lane.posts++ % kTokens;
  {
    const ThreadSanitizer::Heard heard(sanitizer);
    sanitizer.release(&lane.posted);
  }
  const ThreadSanitizer::On on(sanitizer, lane.fiber, callers.others());
  sanitizer.acquire(&lane.posted);
  if (peers != nullptr) peers->begin_device_access();
  Use use(sanitizer, device_writes, callers.innermost());
  memory_.lend(who_, segments, 0, std::min<uint64_t>(size, kMaxBytes), device_writes, use);
  if (peers != nullptr) peers->end_device_access();
  sanitizer.release(&lane.done[token]);
  return static_cast<uint16_t>(1 + lane_ * kTokens + token);
}

uint16_t AnnouncedQueue::post(const roce::SendRequest& request) {
  using roce::SendOpcode;
  const bool at_once = (request.flags & roce::kInline) != 0;
  const bool updates = request.opcode == SendOpcode::kCompareSwap || request.opcode == SendOpcode::kFetchAdd;
  const bool fetches = request.opcode == SendOpcode::kRead || updates;
  if (updates) lanes[lane_].has_atomics.store(true, std::memory_order_relaxed);
  return post(at_once ? std::span<const roce::Segment>() : request.segments, fetches);
}

void AnnouncedQueue::end() {
  if (AnnouncedPeers* peers = AnnouncedPeers::get()) peers->received();
  const ThreadSanitizer& sanitizer = *ThreadSanitizer::of_program();
  Lane& lane = lanes[lane_];
  const BiasedLock lock(lane.mutex);
  const ThreadSanitizer::Heard heard(sanitizer);
  // The last token has all requests: the fiber's clock only grows.
  if (lane.posts != 0) sanitizer.acquire(&lane.done[(lane.posts - 1) % kTokens]);
}

void AnnouncedQueue::polled(const roce::Completion& completion) {
  assert(0 < completion.mark && completion.mark <= kLanes * kTokens);
  const uint32_t number = completion.mark - 1u;
  if (AnnouncedPeers* peers = AnnouncedPeers::get()) {
    if (completion.opcode >= roce::CompletionOpcode::kReceive) {
      peers->received();
    } else if (lanes[number / kTokens].has_atomics.load(std::memory_order_relaxed)) {
      peers->polled_after_atomic();
    }
  }
  const ThreadSanitizer& sanitizer = *ThreadSanitizer::of_program();
  const ThreadSanitizer::Heard heard(sanitizer);
  sanitizer.acquire(&lanes[number / kTokens].done[number % kTokens]);
}

void AnnouncedQueue::end_all() {
  const ThreadSanitizer* sanitizer = ThreadSanitizer::of_program();
  if (sanitizer == nullptr) return;
  if (AnnouncedPeers* peers = AnnouncedPeers::get()) peers->received();
  const ThreadSanitizer::Heard heard(*sanitizer);
  for (Lane& lane : lanes) {
    const BiasedLock lock(lane.mutex);
    if (lane.posts != 0) sanitizer->acquire(&lane.done[(lane.posts - 1) % kTokens]);
  }
}

}  // namespace dapple::soft

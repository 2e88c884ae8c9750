// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The receives that wait in the queues of a process, and the stacks of their posts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/lent_memory.hpp"
#include "provider/soft/check/records/posted_sends.hpp"
#include "provider/soft/check/reports/stack.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::check {

struct PostedReceive {
  uint64_t id = 0;
  uint64_t number = 0;  // add() gives it
  KnownStack stack;
  Segments segments;
  Pieces pieces;
  Owner owner;
  uint64_t posted = 0;  // when; for --check=races

  uint64_t length() const { return roce::length_of(segments); }
};

// Internally locked; the lock is a leaf. `queue` is any address that names a receive queue.
class PostedReceives {
 public:
  // Returns its number.
  uint64_t add(const void* queue, PostedReceive receive);
  // A queue pair receives from the queue from now on, until detach(). `state`: the engine's.
  void attach(const void* queue, const std::atomic<roce::QpState>& state);
  void detach(const void* queue, const std::atomic<roce::QpState>& state);
  // The number of receives that wait.
  size_t count(const void* queue);
  // The device has refused it.
  void remove(const void* queue, uint64_t number);
  // The device has what it has taken of a post. It cannot have more than the last `depth` receives: any earlier ones
  // were dropped with their queue pair.
  void keep_last(const void* queue, size_t depth);
  // Takes the oldest one with this id.
  std::optional<PostedReceive> take(const void* queue, uint64_t id);
  // The oldest one that uses this key.
  std::optional<Stack> with_key(const void* queue, uint32_t lkey);
  // The time of the post of the oldest one with these segments.
  std::optional<uint64_t> time_of(const void* queue, std::span<const roce::Segment> segments);
  // The oldest one that waits for a message in some of these bytes, in the queue of a queue pair that may get one.
  // `lkey`: by this key alone.
  std::optional<PostedReceive> waiting_in(const void* memory, size_t size, std::optional<uint32_t> lkey = std::nullopt);
  // The program has given this memory back: what is there now is not that of the receives.
  void forget_memory(const void* memory, size_t size);
  // The oldest one that waits for a message in some of these bytes, on any queue.
  std::optional<PostedReceive> any_in(const Pieces& pieces);
  void forget(const void* queue);
  void forget_all();

  Mutex& mutex() { return mutex_; }

 private:
  // With the lock.
  bool may_get_messages(const void* queue) const;
  // Asserts the conditions that hold between two calls.
  void assert_consistent(const std::deque<PostedReceive>& waiting) const;

  Mutex mutex_{LockRank::kPostedReceives};
  uint64_t next_number_ = 0;
  std::map<const void*, std::deque<PostedReceive>> queues_;
  std::multimap<const void*, const std::atomic<roce::QpState>*> states_;  // of queue pairs, by their queues
};

}  // namespace dapple::soft::check

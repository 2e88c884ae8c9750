// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/posted_receives.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft::check {

// Numbers go up.
void PostedReceives::assert_consistent([[maybe_unused]] const std::deque<PostedReceive>& waiting) const {
  assert_held(mutex_);
  assert(waiting.empty() || waiting.front().number <= waiting.back().number);
  assert(waiting.empty() || waiting.back().number < next_number_);
}

uint64_t PostedReceives::add(const void* queue, PostedReceive receive) {
  const std::lock_guard lock(mutex_);
  std::deque<PostedReceive>& waiting = queues_[queue];
  receive.number = next_number_++;
  waiting.push_back(std::move(receive));
  assert_consistent(waiting);
  return next_number_ - 1;
}

void PostedReceives::keep_last(const void* queue, size_t depth) {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(queue);
  if (known == queues_.end()) return;
  while (known->second.size() > depth) known->second.pop_front();
  assert_consistent(known->second);
}

void PostedReceives::attach(const void* queue, const std::atomic<roce::QpState>& state) {
  const std::lock_guard lock(mutex_);
  assert(queue != nullptr);
  states_.emplace(queue, &state);
}

void PostedReceives::detach(const void* queue, const std::atomic<roce::QpState>& state) {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const size_t ended =
      std::erase_if(states_, [&](const auto& one) { return one.first == queue && one.second == &state; });
  // The receiving end of XRC has no queue.
  assert(ended <= 1);
}

bool PostedReceives::may_get_messages(const void* queue) const {
  assert_held(mutex_);
  const auto [first, end] = states_.equal_range(queue);
  return std::any_of(first, end, [](const auto& one) {
    const roce::QpState state = one.second->load(std::memory_order_relaxed);
    return state != roce::QpState::kReset && state != roce::QpState::kInit && state != roce::QpState::kError;
  });
}

size_t PostedReceives::count(const void* queue) {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(queue);
  return known == queues_.end() ? 0 : known->second.size();
}

void PostedReceives::remove(const void* queue, uint64_t number) {
  const std::lock_guard lock(mutex_);
  assert(number < next_number_);
  std::erase_if(queues_[queue], [&](const PostedReceive& receive) { return receive.number == number; });
}

std::optional<PostedReceive> PostedReceives::take(const void* queue, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(queue);
  if (known == queues_.end()) return std::nullopt;
  std::deque<PostedReceive>& waiting = known->second;
  const auto found =
      std::find_if(waiting.begin(), waiting.end(), [&](const PostedReceive& receive) { return receive.id == id; });
  if (found == waiting.end()) return std::nullopt;
  PostedReceive taken = std::move(*found);
  waiting.erase(found);
  assert_consistent(waiting);
  return taken;
}

std::optional<Stack> PostedReceives::with_key(const void* queue, uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(queue);
  if (known == queues_.end()) return std::nullopt;
  for (const PostedReceive& receive : known->second) {
    for (const roce::Segment& segment : receive.segments) {
      if (segment.lkey == lkey) return receive.stack;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> PostedReceives::time_of(const void* queue, std::span<const roce::Segment> segments) {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(queue);
  if (known == queues_.end()) return std::nullopt;
  for (const PostedReceive& receive : known->second) {
    const bool is_it = std::equal(receive.segments.begin(), receive.segments.end(), segments.begin(), segments.end(),
                                  [](const roce::Segment& a, const roce::Segment& b) {
                                    return a.address == b.address && a.length == b.length && a.lkey == b.lkey;
                                  });
    if (is_it) return receive.posted;
  }
  return std::nullopt;
}

std::optional<PostedReceive> PostedReceives::waiting_in(const void* memory, size_t size, std::optional<uint32_t> lkey) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (const auto& [queue, waiting] : queues_) {
    if (!may_get_messages(queue)) continue;
    for (const PostedReceive& receive : waiting) {
      for (const Piece& piece : receive.pieces) {
        if (piece.overlaps(begin, begin + size) && (!lkey || piece.lkey == *lkey)) return receive;
      }
    }
  }
  return std::nullopt;
}

void PostedReceives::forget_memory(const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (auto& [queue, waiting] : queues_) {
    for (PostedReceive& receive : waiting)
      receive.pieces.erase_if([&](const Piece& piece) { return piece.overlaps(begin, begin + size); });
  }
}

std::optional<PostedReceive> PostedReceives::any_in(const Pieces& pieces) {
  const std::lock_guard lock(mutex_);
  for (const auto& [queue, waiting] : queues_) {
    for (const PostedReceive& receive : waiting) {
      for (const Piece& piece : receive.pieces) {
        for (const Piece& other : pieces) {
          if (piece.overlaps(other.begin, other.end)) return receive;
        }
      }
    }
  }
  return std::nullopt;
}

void PostedReceives::forget(const void* queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

void PostedReceives::forget_all() {
  const std::lock_guard lock(mutex_);
  queues_.clear();
}

}  // namespace dapple::soft::check

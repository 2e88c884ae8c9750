// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/freed_marks.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft::check {

const char* FreedMarks::name_of(How how) {
  return how == How::kFreed ? "freed" : how == How::kUnmapped ? "unmapped" : "dropped";
}

// Regions of any length may overlap. One that reaches `begin` starts less than the greatest length before it.
template <typename Use>
void FreedMarks::for_each_region(uintptr_t begin, uintptr_t end, Use use) {
  assert_held(mutex_);
  const uintptr_t first = begin > longest_ ? begin - longest_ : 0;
  for (auto found = by_begin_.lower_bound(first); found != by_begin_.end() && found->first < end; ++found) {
    if (found->second->end > begin) use(*found->second);
  }
}

void FreedMarks::forget(std::map<Key, Region>::iterator region) {
  auto [found, end] = by_begin_.equal_range(region->second.begin);
  while (found != end && found->second != &region->second) ++found;
  assert(found != end && ends_.contains(region->second.end) && count_ >= region->second.pieces.size());
  by_begin_.erase(found);
  ends_.erase(ends_.find(region->second.end));
  count_ -= region->second.pieces.size();
  regions_.erase(region);
}

void FreedMarks::publish() {
  assert_held(mutex_);
  assert(regions_.size() == by_begin_.size() && regions_.size() == ends_.size());
  assert(count_ == 0 || !regions_.empty());
  interest_.begin.store(by_begin_.empty() ? UINTPTR_MAX : by_begin_.begin()->first, std::memory_order_relaxed);
  interest_.end.store(ends_.empty() ? 0 : *ends_.rbegin(), std::memory_order_relaxed);
  interest_.taken.store(count_ != 0, std::memory_order_relaxed);
}

void FreedMarks::add(const void* device, uint32_t key, const void* memory, size_t length, uint64_t start) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  if (const auto old = regions_.find({device, key}); old != regions_.end()) forget(old);
  const auto made = regions_.emplace(Key{device, key}, Region{begin, begin + length, start, ++added_, {}}).first;
  by_begin_.emplace(begin, &made->second);
  ends_.insert(made->second.end);
  longest_ = std::max(longest_, uintptr_t{length});
  publish();
}

uint64_t FreedMarks::number_of(const void* device, uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find({device, key});
  return found == regions_.end() ? 0 : found->second.number;
}

void FreedMarks::remove(const void* device, uint32_t key, uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find({device, key});
  if (found == regions_.end() || found->second.number != number) return;
  forget(found);
  publish();
}

bool FreedMarks::is_registered(const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  bool is_registered = false;
  const std::lock_guard lock(mutex_);
  for_each_region(begin, begin + size, [&](const Region&) { is_registered = true; });
  return is_registered;
}

// Parts of pieces that lie outside of the range stay.
void FreedMarks::cut(Region& region, uintptr_t begin, uintptr_t end, bool unmapped_too) {
  assert_held(mutex_);
  Pieces& pieces = region.pieces;
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin()) --at;
  while (at != pieces.end() && at->first < end) {
    if (at->second.end <= begin || (at->second.how != How::kFreed && !unmapped_too)) {
      ++at;
      continue;
    }
    const auto [from, piece] = *at;
    assert(count_ > 0 && region.begin <= from && from < piece.end && piece.end <= region.end);
    at = pieces.erase(at);
    count_--;
    if (from < begin) count_ += pieces.insert_or_assign(from, Piece{begin, piece.how, piece.stack}).second ? 1 : 0;
    if (piece.end > end) count_ += pieces.insert_or_assign(end, piece).second ? 1 : 0;
  }
}

void FreedMarks::mark(const void* memory, size_t size, How how, const Stack& stack) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto kept = std::make_shared<const Stack>(stack);
  const std::lock_guard lock(mutex_);
  for_each_region(begin, begin + size, [&](Region& region) {
    const uintptr_t first = std::max(begin, region.begin), end = std::min(begin + size, region.end);
    cut(region, first, end, true);
    if (count_ >= kMax || first == end) return;
    [[maybe_unused]] const bool is_new = region.pieces.emplace(first, Piece{end, how, kept}).second;
    assert(is_new && first < end);
    count_++;
  });
  publish();
}

void FreedMarks::take(const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for_each_region(begin, begin + size, [&](Region& region) { cut(region, begin, begin + size, false); });
  publish();
}

void FreedMarks::unmark(const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for_each_region(begin, begin + size, [&](Region& region) { cut(region, begin, begin + size, true); });
  publish();
}

std::optional<FreedMarks::Mark> FreedMarks::find(const void* device, uint32_t key, uint64_t address, uint64_t length) {
  // Nothing is marked in most programs.
  if (length == 0 || !any()) return std::nullopt;
  if (given_up_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return std::nullopt;
  const auto found = regions_.find({device, key});
  if (found == regions_.end()) return std::nullopt;
  const Region& region = found->second;
  const uintptr_t begin = region.begin + (address - region.start), end = begin + length;
  auto at = region.pieces.upper_bound(begin);
  if (at != region.pieces.begin() && std::prev(at)->second.end > begin) --at;
  if (at == region.pieces.end() || at->first >= end) return std::nullopt;
  const auto& [first, piece] = *at;
  return Mark{piece.how, reinterpret_cast<const void*>(first), piece.end - first, *piece.stack};
}

}  // namespace dapple::soft::check

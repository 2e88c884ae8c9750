// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/weak_memory.hpp"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/weak_order/waits.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// Of the pieces of a packet that are kept.
constexpr double kHeldShare = 0.5;
constexpr double kLastHeldShare = 0.25;
// Of atomics that have a window.
constexpr double kWindowShare = 0.5;
// Long enough for a program that changes the word on another CPU.
constexpr timespec kWindow = {0, 20'000};

}  // namespace

std::unique_ptr<WeakMemory> WeakMemory::create(roce::Memory& below, uint64_t seed) {
  std::unique_ptr<WeakMemory> made(new (std::nothrow) WeakMemory(below, seed));
  if (made == nullptr) return nullptr;
  made->bytes_.reset(new (std::nothrow) std::byte[kRoom]);
  return made->bytes_ == nullptr ? nullptr : std::move(made);
}

WeakMemory::~WeakMemory() {
  if (count_ != 0) kept_bytes.end();
}

void WeakMemory::assert_consistent() const {
  assert(count_ <= kMaxHeld && used_ <= kRoom);
  assert((count_ == 0) == (used_ == 0));
  assert(count_ == 0 || kept_bytes.any());
  assert(count_ == 0 || held_[count_ - 1].at + held_[count_ - 1].range.length == used_);
}

bool WeakMemory::hold(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) {
  if (count_ == kMaxHeld || range.length > kRoom - used_) return false;
  if (count_ == 0) kept_bytes.begin();
  memcpy(&bytes_[used_], from, range.length);
  held_[count_++] = {who, range, used_};
  used_ += range.length;
  return true;
}

void WeakMemory::place_held() {
  assert_consistent();
  if (count_ == 0) return;
  for (size_t i = 0; i < count_; i++) below_.write(held_[i].who, held_[i].range, &bytes_[held_[i].at]);
  count_ = used_ = 0;
  kept_bytes.end();
}

roce::Fault WeakMemory::write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) {
  assert_consistent();
  if (!may_hold_ || range.length == 0) return below_.write(who, range, from);
  // A refused Write stores nothing, so the whole range is checked first.
  roce::Fault fault = below_.check_remote(who, range, roce::kRemoteWrite);
  // Two pieces and the last word, which programs poll. A short Write has fewer.
  const uint64_t end = range.address + range.length;
  const uint64_t last_word = std::max(range.address, (end - 1) & ~(kWord - 1));
  const uint64_t middle = std::max(range.address, (range.address + random_.below(range.length)) & ~(kWord - 1));
  for (uint64_t begin = range.address, next = 0; begin < end && fault == roce::Fault::kNone; begin = next) {
    next = begin < middle ? std::min(middle, last_word) : begin < last_word ? last_word : end;
    const roce::RemoteRange piece = {range.rkey, begin, next - begin};
    const std::byte* bytes = from + (begin - range.address);
    const bool is_kept = random_.happens(next == end ? kLastHeldShare : kHeldShare);
    if (is_kept && hold(who, piece, bytes)) continue;
    fault = below_.write(who, piece, bytes);
  }
  return fault;
}

// The lower layers have atomics only, so the load adds 0, and the store is a swap that is repeated until it succeeds.
template <typename Next>
roce::Fault WeakMemory::change_word(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t& original,
                                    Next next) {
  const roce::Fault fault = below_.fetch_add(who, rkey, address, 0, original);
  if (fault != roce::Fault::kNone) return fault;
  const CancelGuard whole;
  nanosleep(&kWindow, nullptr);
  uint64_t changed = 0;
  if (!next(original, changed)) return roce::Fault::kNone;
  uint64_t expected = original;
  for (;;) {
    uint64_t found = 0;
    const roce::Fault stored = below_.compare_swap(who, rkey, address, expected, changed, found);
    if (stored != roce::Fault::kNone || found == expected) return stored;
    expected = found;
  }
}

roce::Fault WeakMemory::compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare,
                                     uint64_t swap, uint64_t& original) {
  if (!random_.happens(kWindowShare)) return below_.compare_swap(who, rkey, address, compare, swap, original);
  return change_word(who, rkey, address, original, [&](uint64_t old, uint64_t& changed) {
    changed = swap;
    return old == compare;
  });
}

roce::Fault WeakMemory::fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add,
                                  uint64_t& original) {
  if (!random_.happens(kWindowShare)) return below_.fetch_add(who, rkey, address, add, original);
  return change_word(who, rkey, address, original, [&](uint64_t old, uint64_t& changed) {
    changed = old + add;
    return true;
  });
}

roce::Fault WeakMemory::bind_window(roce::Accessor who, const roce::WindowBind& bind) {
  place_held();
  return below_.bind_window(who, bind);
}

roce::Fault WeakMemory::invalidate_local(roce::Accessor who, uint32_t rkey) {
  place_held();
  return below_.invalidate_local(who, rkey);
}

}  // namespace dapple::soft

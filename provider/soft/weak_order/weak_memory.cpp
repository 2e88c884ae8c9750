// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/weak_memory.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/weak_order/waits.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// Of the pieces of a packet that are kept.
constexpr double kHeldShare = 0.5;
constexpr double kLastHeldShare = 0.25;
// Of Reads that fetch their bytes when they arrive.
constexpr double kEarlyShare = 0.5;
// Of atomics whose store comes later.
constexpr double kLateStoreShare = 0.5;

}  // namespace

std::unique_ptr<WeakMemory> WeakMemory::create(roce::Memory& below, uint64_t seed) {
  std::unique_ptr<WeakMemory> made(new (std::nothrow) WeakMemory(below, seed));
  if (made == nullptr) return nullptr;
  made->bytes_.reset(new (std::nothrow) std::byte[kRoom + kMaxEarly]);
  return made->bytes_ == nullptr ? nullptr : std::move(made);
}

WeakMemory::~WeakMemory() {
  late_atomic.forget(this);
  if (count_ != 0) kept_bytes.end();
}

void WeakMemory::assert_consistent() const {
  assert(count_ <= kMaxHeld && used_ <= kRoom);
  assert((count_ == 0) == (used_ == 0));
  assert(early_.length <= kMaxEarly);
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
  late_atomic.store_of(this, below_);
  is_in_order_ = false;
  if (count_ == 0) return;
  for (size_t i = 0; i < count_; i++) below_.write(held_[i].who, held_[i].range, &bytes_[held_[i].at]);
  count_ = used_ = 0;
  kept_bytes.end();
}

roce::Fault WeakMemory::check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) {
  const roce::Fault fault = below_.check_remote(who, range, access);
  if (fault != roce::Fault::kNone || access != roce::kRemoteRead || range.length > kMaxEarly) return fault;
  if (early_.length != 0 || !random_.happens(kEarlyShare)) return fault;
  // If this read fails, the answer reads again.
  if (below_.read(who, range, &bytes_[kRoom]) == roce::Fault::kNone) early_ = range;
  return fault;
}

// The answer to another Read of the same bytes may take them, because it has arrived as well.
roce::Fault WeakMemory::read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) {
  const uint64_t offset = range.address - early_.address;
  const bool is_early = early_.length != 0 && range.rkey == early_.rkey && range.address >= early_.address &&
                        offset + range.length <= early_.length;
  if (!is_early) return below_.read(who, range, to);
  // The region may have been deregistered since.
  const roce::Fault fault = below_.check_remote(who, range, roce::kRemoteRead);
  if (fault == roce::Fault::kNone) memcpy(to, &bytes_[kRoom + offset], range.length);
  if (fault != roce::Fault::kNone || offset + range.length == early_.length) early_ = {};
  return fault;
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
    const bool is_kept = is_in_order_ || random_.happens(next == end ? kLastHeldShare : kHeldShare);
    if (is_kept && hold(who, piece, bytes)) continue;
    if (is_in_order_) place_held();
    fault = below_.write(who, piece, bytes);
  }
  return fault;
}

roce::Fault WeakMemory::compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare,
                                     uint64_t swap, uint64_t& original) {
  return late_atomic.execute(this, below_, {who, rkey, address, true, compare, swap}, random_.happens(kLateStoreShare),
                             original);
}

roce::Fault WeakMemory::fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add,
                                  uint64_t& original) {
  return late_atomic.execute(this, below_, {who, rkey, address, false, 0, add}, random_.happens(kLateStoreShare),
                             original);
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

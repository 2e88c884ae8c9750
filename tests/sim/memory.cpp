// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/memory.hpp"

#include <algorithm>
#include <cstring>

namespace dapple::sim {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;
using roce::Segment;

namespace {

bool holds(const Key& key, uint64_t address, uint64_t length) {
  return address >= key.address && length <= key.length && address - key.address <= key.length - length;
}

}  // namespace

uint64_t SimMemory::allocate(size_t size) {
  const size_t rounded = (size + 7) / 8 * 8 + 8;
  if (rounded > bytes_.size() - used_) return 0;
  const uint64_t address = base_ + used_;
  used_ += rounded;
  return address;
}

uint32_t SimMemory::add_key(const Key& key) {
  keys_.push_back(key);
  keys_.back().key = static_cast<uint32_t>(keys_.size() << 8 | (keys_.size() * 37 & 0xFF));
  return keys_.back().key;
}

const Key* SimMemory::find(uint32_t key) const {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [key](const Key& each) { return each.key == key; });
  return found == keys_.end() ? nullptr : &*found;
}

Key* SimMemory::find_live(uint32_t key, uint32_t domain) {
  for (Key& each : keys_)
    if (each.key == key) return each.live && each.domain == domain ? &each : nullptr;
  return nullptr;
}

void SimMemory::revoke(uint32_t key) {
  for (Key& each : keys_) {
    if (each.key != key) continue;
    each.live = false;
    each.died = true;
  }
}

Fault SimMemory::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  if (watcher_.is_late(who.qpn)) return Fault::kLater;
  if (range.length == 0) return Fault::kNone;
  const Key* key = find_live(range.rkey, who.domain);
  if (key == nullptr || !holds(*key, range.address, range.length)) return Fault::kAccess;
  if ((key->access & access) != access || (key->window && key->qpn != who.qpn)) return Fault::kAccess;
  return broken ? Fault::kFailed : Fault::kNone;
}

Fault SimMemory::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  const Fault fault = check_remote(who, range, roce::kRemoteWrite);
  if (fault != Fault::kNone || range.length == 0) return fault;
  std::memcpy(at(range.address), from, range.length);
  watcher_.remote_written(who.qpn, range.address, {from, range.length});
  return Fault::kNone;
}

Fault SimMemory::read(Accessor who, const RemoteRange& range, std::byte* to) {
  const Fault fault = check_remote(who, range, roce::kRemoteRead);
  if (fault != Fault::kNone || range.length == 0) return fault;
  std::memcpy(to, at(range.address), range.length);
  watcher_.remote_read(who.qpn, range.address, {to, range.length});
  return Fault::kNone;
}

Fault SimMemory::check_atomic(Accessor who, uint32_t rkey, uint64_t address, uint32_t access) {
  if (address % 8 != 0) return Fault::kUnaligned;
  return check_remote(who, {rkey, address, 8}, access);
}

Fault SimMemory::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                              uint64_t& original) {
  const Fault fault = check_atomic(who, rkey, address, roce::kRemoteAtomic);
  if (fault != Fault::kNone) return fault;
  std::memcpy(&original, at(address), 8);
  if (original == compare) std::memcpy(at(address), &swap, 8);
  watcher_.remote_atomic(who.qpn, {AtomicKind::kCompareSwap, address, swap, compare, original});
  return Fault::kNone;
}

Fault SimMemory::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  const Fault fault = check_atomic(who, rkey, address, roce::kRemoteAtomic);
  if (fault != Fault::kNone) return fault;
  std::memcpy(&original, at(address), 8);
  const uint64_t sum = original + add;
  std::memcpy(at(address), &sum, 8);
  watcher_.remote_atomic(who.qpn, {AtomicKind::kFetchAdd, address, add, 0, original});
  return Fault::kNone;
}

Fault SimMemory::atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) {
  const Fault fault = check_atomic(who, rkey, address, roce::kRemoteWrite);
  if (fault != Fault::kNone) return fault;
  std::memcpy(at(address), &value, 8);
  watcher_.remote_atomic(who.qpn, {AtomicKind::kWrite, address, value, 0, 0});
  return Fault::kNone;
}

Fault SimMemory::flush(Accessor who, const RemoteRange& range, uint32_t type) {
  const uint32_t access = (type & 1 ? roce::kFlushGlobal : 0U) | (type & 2 ? roce::kFlushPersistent : 0U);
  RemoteRange checked = range;
  // The whole region: only its key and rights matter, not its length.
  if (type >> 4 & 3) {
    const Key* key = find_live(range.rkey, who.domain);
    if (key == nullptr) return Fault::kAccess;
    checked.address = key->address;
    checked.length = key->length;
  }
  const Fault fault = check_remote(who, checked, access);
  if (fault == Fault::kNone) watcher_.remote_flushed(who.qpn, range);
  return fault;
}

Fault SimMemory::check_local(Accessor who, std::span<const Segment> segments, bool write) {
  for (const Segment& segment : segments) {
    if (segment.length == 0) continue;
    const Key* key = find_live(segment.lkey, who.domain);
    if (key == nullptr || key->window || !holds(*key, segment.address, segment.length)) return Fault::kAccess;
    if (write && !(key->access & roce::kLocalWrite)) return Fault::kAccess;
  }
  return Fault::kNone;
}

namespace {

// Calls copy(address, where in the transfer, size) for each piece of [offset, offset + size) of the segments. False if
// they hold less.
template <typename Copy>
bool for_pieces(std::span<const Segment> segments, uint64_t offset, size_t size, Copy copy) {
  size_t done = 0;
  for (const Segment& segment : segments) {
    if (done == size) break;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const size_t piece = std::min<size_t>(segment.length - offset, size - done);
    copy(segment.address + offset, done, piece);
    done += piece;
    offset = 0;
  }
  return done == size;
}

}  // namespace

Fault SimMemory::gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to, size_t size) {
  const Fault fault = check_local(who, segments, false);
  if (fault != Fault::kNone) return fault;
  watcher_.gathered(who.qpn, segments);
  const bool whole = for_pieces(segments, offset, size, [&](uint64_t address, size_t done, size_t piece) {
    std::memcpy(to + done, at(address), piece);
  });
  return whole ? Fault::kNone : Fault::kAccess;
}

Fault SimMemory::scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                         size_t size) {
  if (watcher_.is_late(who.qpn)) return Fault::kLater;
  const Fault fault = check_local(who, segments, true);
  if (fault != Fault::kNone) return fault;
  const bool whole = for_pieces(segments, offset, size, [&](uint64_t address, size_t done, size_t piece) {
    std::memcpy(at(address), from + done, piece);
  });
  watcher_.scattered(who.qpn);
  // The bytes may be there although the owner's answer is late.
  if (watcher_.is_late(who.qpn)) return Fault::kLater;
  return whole ? Fault::kNone : Fault::kAccess;
}

Fault SimMemory::bind_window(Accessor who, const roce::WindowBind& bind) {
  const Key* region = find_live(bind.region_lkey, who.domain);
  for (Key& window : keys_) {
    if (window.key != bind.window_rkey || !window.window || window.domain != who.domain) continue;
    if (window.live || region == nullptr || !(region->access & roce::kWindowBind)) return Fault::kAccess;
    if (!holds(*region, bind.address, bind.length)) return Fault::kAccess;
    window.key = bind.new_rkey;
    window.address = bind.address;
    window.length = bind.length;
    window.access = bind.access;
    window.qpn = who.qpn;
    window.live = true;
    return Fault::kNone;
  }
  return Fault::kAccess;
}

Fault SimMemory::invalidate_local(Accessor who, uint32_t rkey) {
  Key* key = find_live(rkey, who.domain);
  if (key == nullptr || !key->window) return Fault::kAccess;
  key->live = false;
  key->died = true;
  return Fault::kNone;
}

Fault SimMemory::invalidate_remote(Accessor who, uint32_t rkey) {
  if (watcher_.is_late(who.qpn)) return Fault::kLater;
  Key* key = find_live(rkey, who.domain);
  if (key == nullptr || !key->window || key->qpn != who.qpn) return Fault::kAccess;
  key->live = false;
  key->died = true;
  return Fault::kNone;
}

}  // namespace dapple::sim

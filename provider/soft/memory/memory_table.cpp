// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/memory_table.hpp"

#include <errno.h>
#include <sched.h>

#include <cassert>
#include <new>

#include "provider/soft/locks/users_in_progress.hpp"
#include "provider/soft/memory/gpu_memory.hpp"
#include "provider/soft/memory/on_demand_pages.hpp"

namespace dapple::soft {
namespace {

constexpr uint32_t kIndexMask = 0xFFFFFF;
constexpr uint32_t kTagMask = 0xFF;
constexpr uint32_t kSlotMask = kMaxMemoryEntries - 1;
constexpr uint32_t kMinReach = 4096;
constexpr int kSpinsBeforeYield = 64;

// kLocalWrite has no meaning for a window. Programs give it all the same, because other devices ignore it.
constexpr uint32_t kWindowRights = roce::kRemoteWrite | roce::kRemoteRead | roce::kRemoteAtomic | roce::kZeroBased |
                                   roce::kFlushGlobal | roce::kFlushPersistent | roce::kLocalWrite;

uint32_t index_of(uint32_t key) {
  return (key >> 8) & kSlotMask;
}

bool consistent(const RegionConfig& config) {
  if ((config.access & kRemoteChanges) != 0 && (config.access & roce::kLocalWrite) == 0) return false;
  return config.iova + config.length >= config.iova;
}

// Chooses the tags of keys, so that neighbouring keys are hard to guess.
uint32_t next_random(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 16;
}

}  // namespace

MemoryTable::MemoryTable(uint32_t random)
    : reach_(kMinReach), next_index_(random % kMinReach), lap_(random / kMinReach), random_(random) {}

MemoryTable::~MemoryTable() {
  for (std::atomic<Entry*>& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

void MemoryTable::assert_consistent() const {
  assert_held(mutex_);
  assert(used_ <= kMaxMemoryEntries && next_index_ < reach_);
  assert(kMinReach <= reach_ && reach_ <= kMaxMemoryEntries && (reach_ & (reach_ - 1)) == 0);
}

MemoryTable::Entry* MemoryTable::entry_at(uint32_t key) const {
  const uint32_t slot = index_of(key);
  Entry* chunk = chunks_[slot / kChunkSize].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[slot % kChunkSize];
}

MemoryTable::Entry* MemoryTable::find(uint32_t key, Kind kind) {
  Entry* entry = entry_at(key);
  return entry != nullptr && entry->kind == kind && entry->key == key ? entry : nullptr;
}

// By its index, because a caller may know the window by an older tag.
MemoryTable::Entry* MemoryTable::find_window(uint32_t key) {
  Entry* entry = entry_at(key);
  if (entry == nullptr || (entry->kind != Kind::kWindow1 && entry->kind != Kind::kWindow2)) return nullptr;
  return entry->key >> 8 == key >> 8 ? entry : nullptr;
}

// Gives a free entry a key.
MemoryTable::Entry* MemoryTable::allocate() {
  assert_held(mutex_);
  if (used_ > reach_ / 2 && reach_ < kMaxMemoryEntries) reach_ *= 2;
  // Twice around, because index 0 is left out in some laps.
  for (uint32_t tried = 0; tried < 2 * reach_; ++tried) {
    const uint32_t index = (lap_ * kMaxMemoryEntries | next_index_) & kIndexMask;
    if (++next_index_ == reach_) {
      next_index_ = 0;
      lap_++;
    }
    // Index 0 would make keys that look like no key.
    if (index == 0) continue;
    const uint32_t slot = index & kSlotMask;
    std::atomic<Entry*>& chunk = chunks_[slot / kChunkSize];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      Entry* entries = new (std::nothrow) Entry[kChunkSize];
      if (entries == nullptr) return nullptr;
      chunk.store(entries, std::memory_order_release);
    }
    Entry* entry = entry_at(index << 8);
    if (entry->kind != Kind::kFree) continue;
    assert(entry->key == 0 && entry->valid_key.load() == 0 && entry->users.load() == 0 && entry->region == nullptr);
    entry->key = index << 8 | (next_random(random_) & kTagMask);
    used_++;
    assert_consistent();
    return entry;
  }
  return nullptr;
}

void MemoryTable::revoke(Entry& entry) {
  entry.valid_key.store(0, std::memory_order_seq_cst);
  if (entry.kind == Kind::kRegion) UsersInProgress::await_none(&entry);
  for (int spins = 0; entry.users.load(std::memory_order_seq_cst) != 0; ++spins) {
    if (spins >= kSpinsBeforeYield) sched_yield();
  }
}

void MemoryTable::unbind(Entry& window) {
  assert(window.kind != Kind::kRegion && window.valid_key.load() == 0);
  if (window.region != nullptr) {
    assert(window.region->bound_windows > 0);
    --window.region->bound_windows;
  }
  window.region = nullptr;
  window.domain = window.own_domain;
  window.region_kind = RegionKind::kPlain;
  window.dmabuf = -1;
  window.pages = nullptr;
  window.gpu = nullptr;
  window.memory = nullptr;
  window.length = 0;
  window.access = 0;
  window.qpn = 0;
}

void MemoryTable::release(Entry& entry) {
  assert_held(mutex_);
  assert(used_ > 0 && entry.kind != Kind::kFree && entry.valid_key.load() == 0 && entry.bound_windows == 0);
  used_--;
  entry.kind = Kind::kFree;
  entry.key = 0;
  entry.memory = nullptr;
  entry.pages = nullptr;
  entry.gpu = nullptr;
  entry.bound_windows = 0;
  assert_consistent();
}

void MemoryTable::set_region(Entry& entry, const RegionConfig& config) {
  assert(entry.valid_key.load() == 0 && config.domain != kApart);
  assert((config.kind == RegionKind::kGpu) == (config.gpu != nullptr));
  entry.domain = config.kind == RegionKind::kPlain ? config.domain : kApart;
  entry.own_domain = config.domain;
  entry.access = config.access;
  entry.start = config.iova;
  entry.length = config.length;
  entry.memory = config.memory;
  entry.region_kind = config.kind;
  entry.dmabuf = config.dmabuf;
  entry.pages = config.pages;
  entry.gpu = config.gpu;
}

int MemoryTable::add_region(const RegionConfig& config, uint32_t& key) {
  if (!consistent(config)) return EINVAL;
  const std::lock_guard lock(mutex_);
  Entry* entry = allocate();
  if (entry == nullptr) return ENOMEM;
  entry->kind = Kind::kRegion;
  set_region(*entry, config);
  key = entry->key;
  entry->valid_key.store(entry->key, std::memory_order_seq_cst);
  return 0;
}

int MemoryTable::change_region(uint32_t key, const RegionConfig& config) {
  if (!consistent(config)) return EINVAL;
  const std::lock_guard lock(mutex_);
  Entry* entry = find(key, Kind::kRegion);
  if (entry == nullptr) return EINVAL;
  if (entry->bound_windows != 0) return EBUSY;
  assert(entry->valid_key.load() == entry->key);
  revoke(*entry);
  set_region(*entry, config);
  entry->valid_key.store(entry->key, std::memory_order_seq_cst);
  return 0;
}

int MemoryTable::region_config(uint32_t key, RegionConfig& config) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = find(key, Kind::kRegion);
  if (entry == nullptr) return EINVAL;
  config = {entry->own_domain,  entry->memory, entry->length, entry->start, entry->access,
            entry->region_kind, entry->dmabuf, entry->pages,  entry->gpu};
  return 0;
}

void MemoryTable::note_prefetch(uint32_t key, uint64_t address, uint64_t length) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = find(key, Kind::kRegion);
  if (entry == nullptr || entry->pages == nullptr || length == 0) return;
  if (within(address, length, entry->start, entry->length)) entry->pages->prefetched(entry->at(address), length);
}

bool MemoryTable::find_holder(uint32_t key, KeyHolder& holder) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = entry_at(key);
  if (entry == nullptr || key == 0 || entry->valid_key.load(std::memory_order_relaxed) != key) return false;
  holder = {entry->kind != Kind::kRegion,
            entry->kind == Kind::kWindow2 ? std::optional(entry->qpn) : std::nullopt,
            entry->own_domain,
            entry->access,
            entry->start,
            entry->length,
            entry->region_kind,
            entry->memory,
            entry->gpu == nullptr ? nullptr : entry->gpu->problem()};
  return true;
}

bool MemoryTable::is_unbound_window(uint32_t key) {
  const std::lock_guard lock(mutex_);
  const Entry* window = find_window(key);
  return window != nullptr && key != 0 && window->region == nullptr;
}

int MemoryTable::remove_region(uint32_t key) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find(key, Kind::kRegion);
  if (entry == nullptr) return EINVAL;
  if (entry->bound_windows != 0) return EBUSY;
  revoke(*entry);
  release(*entry);
  return 0;
}

int MemoryTable::add_window(uint32_t domain, WindowType type, uint32_t& key) {
  const std::lock_guard lock(mutex_);
  Entry* entry = allocate();
  if (entry == nullptr) return ENOMEM;
  entry->kind = type == WindowType::kType1 ? Kind::kWindow1 : Kind::kWindow2;
  entry->own_domain = domain;
  unbind(*entry);
  key = entry->key;
  return 0;
}

int MemoryTable::remove_window(uint32_t key) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find_window(key);
  if (entry == nullptr) return EINVAL;
  revoke(*entry);
  unbind(*entry);
  release(*entry);
  return 0;
}

// `region` stays null for an unbind.
BindObstacle MemoryTable::bind_obstacle(roce::Accessor who, const roce::WindowBind& bind, Entry*& window,
                                        Entry*& region) {
  assert_held(mutex_);
  region = nullptr;
  window = find_window(bind.window_rkey);
  if (window == nullptr) return BindObstacle::kNoWindow;
  if (window->own_domain != who.domain) return BindObstacle::kWindowOfAnotherDomain;  // C10-72
  if ((bind.access & ~kWindowRights) != 0) return BindObstacle::kRights;
  const bool type2 = window->kind == Kind::kWindow2;
  // A bind of length 0 unbinds a window of type 1 only (C10-73).
  if (type2 && window->region != nullptr) return BindObstacle::kBound;
  if (type2 && bind.length == 0) return BindObstacle::kNoBytes;
  if (!type2 && (bind.access & roce::kZeroBased) != 0) return BindObstacle::kZeroBased;
  if (bind.length == 0) return BindObstacle::kNone;
  region = find(bind.region_lkey, Kind::kRegion);
  if (region == nullptr) return BindObstacle::kNoRegion;
  if (region->own_domain != who.domain) return BindObstacle::kRegionOfAnotherDomain;
  if ((region->access & roce::kWindowBind) == 0) return BindObstacle::kRegionWithoutBinding;
  if ((bind.access & kRemoteChanges) != 0 && (region->access & roce::kLocalWrite) == 0)
    return BindObstacle::kRegionWithoutWriting;
  // C10-75: a window over a region by offsets would have two meanings of address.
  if ((region->access & roce::kZeroBased) != 0) return BindObstacle::kZeroBasedRegion;
  return within(bind.address, bind.length, region->start, region->length) ? BindObstacle::kNone
                                                                          : BindObstacle::kOutside;
}

BindObstacle MemoryTable::bind_obstacle(roce::Accessor who, const roce::WindowBind& bind) {
  const std::lock_guard lock(mutex_);
  Entry* window = nullptr;
  Entry* region = nullptr;
  return bind_obstacle(who, bind, window, region);
}

roce::Fault MemoryTable::bind_window(roce::Accessor who, const roce::WindowBind& bind) {
  const std::lock_guard lock(mutex_);
  Entry* window = nullptr;
  Entry* region = nullptr;
  if (bind_obstacle(who, bind, window, region) != BindObstacle::kNone) return roce::Fault::kAccess;
  revoke(*window);
  unbind(*window);
  // The index of a key is the device's, and its lowest byte the program's. Any value of that byte works, the present
  // one included. The index that the program gives with it has no meaning.
  window->key = (window->key & ~kTagMask) | (bind.new_rkey & kTagMask);
  if (region == nullptr) return roce::Fault::kNone;
  assert(window->region == nullptr && region->kind == Kind::kRegion && region->valid_key.load() == region->key);
  ++region->bound_windows;
  window->region = region;
  window->memory = region->at(bind.address);
  window->region_kind = region->region_kind;
  window->dmabuf = region->dmabuf;
  window->pages = region->pages;
  window->gpu = region->gpu;
  if (region->domain == kApart) window->domain = kApart;
  window->start = (bind.access & roce::kZeroBased) != 0 ? 0 : bind.address;
  window->length = bind.length;
  window->access = bind.access;
  window->qpn = who.qpn;
  window->valid_key.store(window->key, std::memory_order_seq_cst);
  return roce::Fault::kNone;
}

// Windows of type 2 only: a region that a program registered, and a window of type 1, are not invalidated by requests.
roce::Fault MemoryTable::invalidate(roce::Accessor who, uint32_t rkey) {
  const std::lock_guard lock(mutex_);
  Entry* window = find(rkey, Kind::kWindow2);
  if (window == nullptr || window->own_domain != who.domain || window->region == nullptr || window->qpn != who.qpn)
    return roce::Fault::kAccess;
  revoke(*window);
  unbind(*window);
  return roce::Fault::kNone;
}

roce::Fault MemoryTable::invalidate_local(roce::Accessor who, uint32_t rkey) {
  return invalidate(who, rkey);
}

roce::Fault MemoryTable::invalidate_remote(roce::Accessor who, uint32_t rkey) {
  return invalidate(who, rkey);
}

}  // namespace dapple::soft

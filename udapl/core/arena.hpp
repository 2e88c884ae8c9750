// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Storage for the objects behind DAT handles. Memory is never freed while the library is loaded, so that a stale handle
// always finds a header to read: a freed object's header names the dead table. Slots are reused first in, first out,
// which keeps a stale handle invalid for as long as possible.
//
// Threads: internally locked.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "udapl/core/object.hpp"

namespace dapple::udapl {

template <class T>
class Arena {
 public:
  // Constructs a T in a free slot. Throws std::bad_alloc, or whatever T's constructor throws, with nothing changed.
  template <class... Args>
  T* create(Args&&... args) {
    Slot* slot = take();
    const DeadObject before = *reinterpret_cast<const DeadObject*>(slot->storage);
    try {
      return new (slot->storage) T(std::forward<Args>(args)...);
    } catch (...) {
      // The constructor may have got as far as writing a live header.
      new (slot->storage) DeadObject{before};
      give(slot);
      throw;
    }
  }

  // Stale handles dispatch through the table `dead` from now on.
  void destroy(T* object, const void* dead) {
    assert(object->kind() != Kind::kNone);
    object->~T();
    auto* slot = reinterpret_cast<Slot*>(object);
    new (slot->storage) DeadObject{dead, Kind::kNone};
    give(slot);
  }

  // Marks an object as dead although it cannot be destroyed. Its resources and its slot stay allocated.
  void abandon(T* object, const void* dead) {
    assert(object->kind() != Kind::kNone);
    new (static_cast<void*>(object)) DeadObject{dead, Kind::kNone};
  }

  // The object behind a handle, or null. The handle may be anything: NULL, a wild pointer, an object of another kind, a
  // freed one.
  T* find(const void* handle) {
    std::lock_guard guard(mutex_);
    const auto address = reinterpret_cast<uintptr_t>(handle);
    size_t size = kFirstChunk;
    for (const auto& chunk : chunks_) {
      if (!chunk) break;
      const auto base = reinterpret_cast<uintptr_t>(chunk.get());
      if (address >= base && address < base + size * sizeof(Slot)) {
        if ((address - base) % sizeof(Slot) != 0) return nullptr;
        const auto* header = reinterpret_cast<const DeadObject*>(handle);
        return header->kind == T::kKind ? const_cast<T*>(static_cast<const T*>(handle)) : nullptr;
      }
      size *= 2;
    }
    return nullptr;
  }

  // Calls visit(T&) for every live object. visit must not create or destroy objects of this arena.
  template <class Visit>
  void for_each(Visit visit) {
    std::lock_guard guard(mutex_);
    for (size_t chunk = 0; chunk < chunk_count_; ++chunk) {
      for (size_t i = 0; i < kFirstChunk << chunk; ++i) {
        auto* header = reinterpret_cast<DeadObject*>(chunks_[chunk][i].storage);
        if (header->kind == T::kKind) visit(*reinterpret_cast<T*>(header));
      }
    }
  }

 private:
  static constexpr size_t kFirstChunk = 32;  // objects; each further chunk has twice as many
  static constexpr size_t kMaxChunks = 24;

  struct Slot {
    alignas(T) std::byte storage[sizeof(T)];
    Slot* next;
  };

  Slot* take() {
    std::lock_guard guard(mutex_);
    if (!free_head_) grow();
    Slot* slot = free_head_;
    assert(slot && reinterpret_cast<const DeadObject*>(slot->storage)->kind == Kind::kNone);
    free_head_ = slot->next;
    if (!free_head_) free_tail_ = nullptr;
    return slot;
  }

  void give(Slot* slot) {
    std::lock_guard guard(mutex_);
    assert(!free_head_ == !free_tail_ && free_tail_ != slot);
    slot->next = nullptr;
    (free_tail_ ? free_tail_->next : free_head_) = slot;
    free_tail_ = slot;
  }

  void grow() {
    if (chunk_count_ == kMaxChunks) throw std::bad_alloc();
    const size_t size = kFirstChunk << chunk_count_;
    auto chunk = std::make_unique<Slot[]>(size);  // zeroed: a slot never used has Kind::kNone
    for (size_t i = 0; i < size; ++i) chunk[i].next = i + 1 < size ? &chunk[i + 1] : nullptr;
    free_head_ = &chunk[0];
    free_tail_ = &chunk[size - 1];
    chunks_[chunk_count_++] = std::move(chunk);
  }

  std::mutex mutex_;
  std::array<std::unique_ptr<Slot[]>, kMaxChunks> chunks_;
  size_t chunk_count_ = 0;
  Slot* free_head_ = nullptr;
  Slot* free_tail_ = nullptr;
};

// The arena of a kind. It lives until the process ends, because threads of the application may still hold handles
// during exit.
template <class T>
Arena<T>& arena() {
  static Arena<T>& instance = *new Arena<T>;
  return instance;
}

}  // namespace dapple::udapl

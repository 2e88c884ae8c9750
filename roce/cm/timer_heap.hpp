// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Deadlines of items: a heap with room for every item. Items have the members `deadline`, kNever at first, and
// `timer_at`, 0 at first; only the heap writes both.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "roce/host/ports.hpp"

namespace dapple::roce::cm {

template <class Item>
class TimerHeap {
 public:
  // False if there is no memory.
  bool create(uint32_t capacity) {
    capacity_ = capacity;
    heap_.reset(new (std::nothrow) Item*[size_t{capacity} + 1]);
    return heap_ != nullptr;
  }

  // Replaces the item's earlier deadline.
  void set(Item& item, Time deadline) {
    if (item.timer_at == 0) {
      assert(size_ < capacity_);
      place(item, ++size_);
    }
    item.deadline = deadline;
    rise(item);
    sink(item);
  }
  void cancel(Item& item) {
    const uint32_t at = item.timer_at;
    if (at == 0) return;
    assert(at <= size_ && heap_[at] == &item);
    item.timer_at = 0;
    item.deadline = kNever;
    Item& moved = *heap_[size_--];
    if (&moved == &item) return;
    place(moved, at);
    rise(moved);
    sink(moved);
  }

  // The item with the earliest deadline, or nullptr.
  Item* first() const { return size_ == 0 ? nullptr : heap_[1]; }
  uint32_t size() const { return size_; }
  // All of them, in any order. The visitor sets and cancels none.
  template <class Visitor>
  void visit(Visitor visitor) const {
    for (uint32_t at = 1; at <= size_; at++) visitor(*heap_[at]);
  }

 private:
  void place(Item& item, uint32_t at) {
    assert(at >= 1 && at <= size_);
    heap_[at] = &item;
    item.timer_at = at;
  }
  void rise(Item& item) {
    uint32_t at = item.timer_at;
    for (; at > 1 && heap_[at / 2]->deadline > item.deadline; at /= 2) place(*heap_[at / 2], at);
    place(item, at);
  }
  void sink(Item& item) {
    uint32_t at = item.timer_at;
    for (uint32_t child = 2 * at; child <= size_; child = 2 * at) {
      if (child < size_ && heap_[child + 1]->deadline < heap_[child]->deadline) ++child;
      if (heap_[child]->deadline >= item.deadline) break;
      place(*heap_[child], at);
      at = child;
    }
    place(item, at);
  }

  std::unique_ptr<Item*[]> heap_;
  uint32_t capacity_ = 0;
  uint32_t size_ = 0;
};

}  // namespace dapple::roce::cm

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An intrusive list: its items have the members `older` and `newer`. It owns nothing.
#pragma once

#include <cassert>
#include <cstdint>

namespace dapple::dappled::rdma_cm {

template <class Item>
class List {
 public:
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): the analyzer loses track of remove().
  Item* first() const { return first_; }
  Item* last() const { return last_; }
  uint32_t size() const { return size_; }

  void add(Item& item) {
    assert(item.older == nullptr && item.newer == nullptr && last_ != &item);
    item.older = last_;
    item.newer = nullptr;
    (last_ == nullptr ? first_ : last_->newer) = &item;
    last_ = &item;
    size_++;
  }
  void remove(Item& item) {
    assert(size_ > 0 && (item.older != nullptr || first_ == &item) && (item.newer != nullptr || last_ == &item));
    (item.older == nullptr ? first_ : item.older->newer) = item.newer;
    (item.newer == nullptr ? last_ : item.newer->older) = item.older;
    item.older = item.newer = nullptr;
    size_--;
    assert((size_ == 0) == (first_ == nullptr) && (size_ == 0) == (last_ == nullptr));
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
  uint32_t size_ = 0;
};

}  // namespace dapple::dappled::rdma_cm

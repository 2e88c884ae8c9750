// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace dapple::soft::check {

// As std::vector, but up to kFew elements are in the list itself: most requests have one segment, and each post makes
// several such lists.
template <typename Element, size_t kFew>
class ShortList {
 public:
  ShortList() = default;
  ShortList(std::initializer_list<Element> elements) : ShortList(elements.begin(), elements.end()) {}
  template <typename Iterator>
  ShortList(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  void push_back(const Element& element) {
    if (size_ < kFew) {
      few_[size_++] = element;
      return;
    }
    if (size_ == kFew) all_.assign(few_, few_ + kFew);
    all_.push_back(element);
    size_++;
    assert(all_.size() == size_);
  }
  template <typename Predicate>
  void erase_if(Predicate goes) {
    ShortList left;
    for (const Element& element : *this) {
      if (!goes(element)) left.push_back(element);
    }
    *this = std::move(left);
  }

  const Element* data() const { return size_ <= kFew ? few_ : all_.data(); }
  const Element* begin() const { return data(); }
  const Element* end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Element& operator[](size_t at) const {
    assert(at < size_);
    return data()[at];
  }

 private:
  static_assert(std::is_trivially_copyable_v<Element>);

  size_t size_ = 0;
  Element few_[kFew];
  std::vector<Element> all_;  // if they are more
};

}  // namespace dapple::soft::check

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Where the copies of librdmacm's events lie: each in whole pages of its own, because rights belong to pages. Pure.
#pragma once

#include <stddef.h>

#include <optional>

namespace dapple::heap {

class EventPlaces {
 public:
  static constexpr size_t kCount = 1024;

  // begin: the start of size() bytes, at a page, or null before there is memory. page_size: the system's. room: the
  // bytes that an event needs.
  constexpr EventPlaces(char* begin, size_t page_size, size_t room)
      : begin_(begin), place_size_((room + page_size - 1) / page_size * page_size) {}

  constexpr size_t place_size() const { return place_size_; }
  constexpr size_t size() const { return kCount * place_size_; }
  constexpr char* at(size_t number) const { return begin_ + number * place_size_; }

  // The number of the place with this address; empty for other addresses.
  std::optional<size_t> number_of(const void* address) const {
    const auto* there = static_cast<const char*>(address);
    if (begin_ == nullptr || there < begin_ || there >= begin_ + size()) return std::nullopt;
    return static_cast<size_t>(there - begin_) / place_size_;
  }

 private:
  char* begin_;
  size_t place_size_;
};

}  // namespace dapple::heap

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A private page at a random address where programs have nothing. Its address tells nothing about the rest of the
// process' memory. The chance that another program has such a page at the same address is one in 2^32 with pages of
// 4 KiB. A child of fork() lacks the page.
#pragma once

#include <cstdint>

namespace dapple::soft {

// One thread.
class RandomPage {
 public:
  RandomPage() = default;
  ~RandomPage();
  RandomPage(const RandomPage&) = delete;
  RandomPage& operator=(const RandomPage&) = delete;

  // False if it cannot be mapped: the machine lacks these addresses, or the plug-in is built with ThreadSanitizer.
  bool map();
  // After map() has failed: a page where the kernel chooses. False if there is no memory.
  bool map_anywhere();
  // 0 before.
  uint64_t address() const { return address_; }

  // Tells whether the address can be in a page of map().
  static bool may_have(uint64_t address);

 private:
  uint64_t address_ = 0;
};

}  // namespace dapple::soft

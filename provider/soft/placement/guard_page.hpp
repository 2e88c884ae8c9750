// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A random page, which no other program has at its address. The kernel's process_vm_writev() names a process by its
// number, which another program gets by exec(), or another process after this one's end. So a peer begins each call
// with a word for the guard page. The kernel uses one address space for the whole call, goes through
// the parts in order, and stops at the first that is not mapped. So no byte behind the guard page comes to another
// program.
#pragma once

#include <cstdint>

#include "provider/soft/proof/random_page.hpp"

namespace dapple::soft {

// The data that a peer needs for its calls. Both members are 0 if there is no page.
struct Guard {
  uint64_t address;  // of the page: its first word is `nonce`, the second is for peers' words
  uint64_t nonce;
};

// One thread.
class GuardPage {
 public:
  // False if it cannot be mapped. Once.
  bool map();
  const Guard& guard() const { return guard_; }

 private:
  RandomPage page_;
  Guard guard_ = {};
};

}  // namespace dapple::soft

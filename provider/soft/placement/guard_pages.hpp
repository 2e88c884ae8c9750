// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Pages at random addresses of this process, which no other program has there. The kernel's process_vm_writev() names a
// process by its number, which another program gets by exec(), or another process after this one's end. So a peer
// begins each call with a word for each guard page. The kernel uses one address space for the whole call, goes through
// the parts in order, and stops at the first that is not mapped. So no byte behind the guard pages comes to another
// program.
#ifndef DAPPLE_PROVIDER_SOFT_PLACEMENT_GUARD_PAGES_HPP
#define DAPPLE_PROVIDER_SOFT_PLACEMENT_GUARD_PAGES_HPP

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

inline constexpr size_t kGuardPages = 2;

// Where a peer finds them. All are 0 if there are none.
struct Guards {
  uint64_t addresses[kGuardPages];  // of the pages: the first word of each is `nonce`, the second is for peers' words
  uint64_t nonce;
};

// One thread.
class GuardPages {
 public:
  GuardPages() = default;
  ~GuardPages();
  GuardPages(const GuardPages&) = delete;
  GuardPages& operator=(const GuardPages&) = delete;

  // False if one of them cannot be mapped: then there are none. Once.
  bool map();
  const Guards& guards() const { return guards_; }

 private:
  void unmap();

  Guards guards_ = {};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_PLACEMENT_GUARD_PAGES_HPP

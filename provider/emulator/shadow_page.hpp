// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the parts of Shadow share.
#ifndef DAPPLE_PROVIDER_EMULATOR_SHADOW_PAGE_HPP
#define DAPPLE_PROVIDER_EMULATOR_SHADOW_PAGE_HPP

#include "provider/emulator/shadow.hpp"

namespace dapple::provider {

struct Shadow::Page {
  uintptr_t address;
  uint32_t regions;
  uint32_t next;     // in its bucket, or in the list of free ones
  uint32_t watched;  // regions that have all of it and are watched
  bool in_sync;      // open to a sync
};

class Shadow::Guard {
 public:
  explicit Guard(Shadow& shadow) : mutex_(shadow.mutex_) { pthread_mutex_lock(&mutex_); }
  ~Guard() { pthread_mutex_unlock(&mutex_); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

// The pages that lie in a region with all of their bytes; the others hold what is not the device's.
inline uintptr_t whole_pages_begin(const ShadowRegion& region) {
  return (region.address + Shadow::kPage - 1) & ~(Shadow::kPage - 1);
}
inline uintptr_t whole_pages_end(const ShadowRegion& region) {
  return (region.address + region.length) & ~(Shadow::kPage - 1);
}

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SHADOW_PAGE_HPP

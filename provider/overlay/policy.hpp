// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What somebody who wants to stand between a program and its device is asked about each memory region.
#ifndef DAPPLE_PROVIDER_OVERLAY_POLICY_HPP
#define DAPPLE_PROVIDER_OVERLAY_POLICY_HPP

#include <stddef.h>
#include <stdint.h>

namespace dapple::provider {

// A region as the program asked for it, or as the device is to be told of it.
struct RegionRequest {
  void* address;
  size_t length;
  uint64_t iova;
  int access;
};

// One object may serve several contexts. Its functions are called without a lock held, from any thread, for different
// regions at the same time. A state is the policy's own; null is a good one.
class RegionPolicy {
 public:
  // Before the device registers memory. May change address and iova, which is then what the device gets; the program
  // goes on seeing what it asked for. Returns 0, or an errno with which the registration fails.
  virtual int before_registration(RegionRequest& request, void** state) = 0;
  // The device has refused what before_registration() allowed.
  virtual void registration_failed(void* state) = 0;
  // Before the device changes a region in place. flags and access as for ibv_rereg_mr(). Returns 0, or an errno with
  // which it fails.
  virtual int before_reregistration(int flags, int access, void* state) = 0;
  // The device has let the region go, or is about to be closed with it.
  virtual void deregistered(void* state) = 0;

 protected:
  ~RegionPolicy() = default;
};

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_OVERLAY_POLICY_HPP

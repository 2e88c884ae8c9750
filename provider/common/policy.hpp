// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface of a policy between a program and its device: the overlay asks it about each memory region.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

namespace dapple::provider {

// A region in the program's request, or in the request to the device.
struct RegionRequest {
  void* address;
  size_t length;
  uint64_t iova;
  int access;
};

// The overlay's help for a transfer watch.
struct TransferMeans {
  int (*post_send)(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad);  // the provider's own
  // The segment's place in the program; false if it is unknown.
  bool (*find)(const ibv_context* context, const ibv_sge& segment, iovec* range);
  // True if each request of the queue pair has a completion (sq_sig_all).
  bool (*signals_all)(ibv_qp* qp);
};

// Sees the requests and completions of ibv_post_send() and ibv_poll_cq(). Called without a lock held, from any thread.
class TransferWatch {
 public:
  // Called instead of the provider's ibv_post_send(), which is means.post_send.
  virtual int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means) = 0;
  // Called instead of the provider's ibv_poll_cq(), which is poll_cq.
  virtual int poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*)) = 0;
  // The queue pair will complete no more requests: it is about to be destroyed, or has been reset.
  virtual void emptied(const ibv_qp* qp) = 0;

 protected:
  ~TransferWatch() = default;
};

// One object may serve several contexts. Its functions are called without a lock held, from any thread, for different
// regions at the same time. The state of a region belongs to the policy, and may be null.
class RegionPolicy {
 public:
  // Called before the device registers memory. May change address and iova for the device; the program still sees its
  // own values. Returns 0, or an errno with which the registration fails.
  virtual int before_registration(RegionRequest& request, void** state) = 0;
  // The device has registered the memory. The program gets the region after this call.
  virtual void registered(void* state) = 0;
  // The device has refused the registration after before_registration().
  virtual void registration_failed(void* state) = 0;
  // Called before the device changes a region in place. flags and access as for ibv_rereg_mr(). Returns 0, or an errno
  // with which it fails.
  virtual int before_reregistration(int flags, int access, void* state) = 0;
  // The device has changed the region's access.
  virtual void access_changed(int access, void* state) = 0;
  // The device has deregistered the region, or is about to be closed with it.
  virtual void deregistered(void* state) = 0;
  // The watch, or null if the policy has none. Each call returns the same.
  virtual TransferWatch* transfers() { return nullptr; }

 protected:
  ~RegionPolicy() = default;
};

}  // namespace dapple::provider

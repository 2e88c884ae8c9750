// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The events of librdmacm that the peer waits for an answer to, for dapple-run --hang: a program answers
// RDMA_CM_EVENT_CONNECT_REQUEST by rdma_accept() or rdma_reject(), and RDMA_CM_EVENT_CONNECT_RESPONSE by
// rdma_establish(). libdapple-preload.so notes them, and the plug-in reads them.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <atomic>

#include "provider/common/stack.hpp"

namespace dapple::provider {

struct CmAnswerNote {
  std::atomic<const void*> id{nullptr};  // null: free. The rest is there when `is_complete`
  std::atomic<bool> is_complete{false};
  bool is_request = false;  // RDMA_CM_EVENT_CONNECT_REQUEST, not RDMA_CM_EVENT_CONNECT_RESPONSE
  pid_t process = 0;        // a child of fork() has only copies
  Stack got = {};
};

struct CmAnswerNotes {
  static constexpr int kMax = 256;
  CmAnswerNote events[kMax];
  std::atomic<int> count{0};  // of those that are not free
};

}  // namespace dapple::provider

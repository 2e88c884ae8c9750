// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The calls of librdmacm that fail, for dapple-run --explain and --check. libdapple-preload.so sees the calls, and the
// plug-in reports them.
#pragma once

#include <atomic>

namespace dapple::provider {

// These functions run in the thread of the call.
struct CmCallWatcher {
  // The number of failures of this thread that have been reported so far.
  unsigned (*reported)();
  // The function returns this error, and nothing below it has been reported. `reason`: a sentence, and after a line
  // break the remedy; empty if only the error is known. A negative error is a code of getaddrinfo(3).
  void (*failed)(const char* function, int error, const char* reason);
  // rdma_connect() or rdma_accept() has told the peer that its queue pair has the number 0.
  void (*without_qp)(const char* function);
  // The program has got RDMA_CM_EVENT_DISCONNECTED of an id with this queue pair.
  void (*disconnected)(const void* qp);
};

struct CmCalls {
  std::atomic<const CmCallWatcher*> watcher{nullptr};  // null: no call is reported
};

// The name of the variable that libdapple-preload.so exports.
inline constexpr char kCmCalls[] = "dapple_cm_calls";

}  // namespace dapple::provider

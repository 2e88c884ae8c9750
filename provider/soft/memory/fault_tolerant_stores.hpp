// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A datagram may come at any moment, also after the program has unmapped the memory of its receives, while it ends and
// has not destroyed the queue pair yet. UCX ends in this order. A NIC goes on with the old pages. So a thread that is
// not the program's own poll stores datagrams in a way that survives this; it costs a system call.
#pragma once

#include <cstddef>

namespace dapple::soft {

// While an object exists that was made with `wanted`, this thread's stores tolerate faults.
class FaultTolerantStores {
 public:
  explicit FaultTolerantStores(bool wanted) { now_ = wanted; }
  ~FaultTolerantStores() { now_ = false; }
  FaultTolerantStores(const FaultTolerantStores&) = delete;
  FaultTolerantStores& operator=(const FaultTolerantStores&) = delete;

  static bool now() { return now_; }

 private:
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit bool now_ = false;
};

// Bytes for memory that is not there are lost. `size` is not 0.
[[gnu::cold]] void store_tolerating_faults(std::byte* to, const std::byte* from, size_t size);

}  // namespace dapple::soft

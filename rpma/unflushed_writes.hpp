// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For dapple-run --check: the writes of a connection to memory that the peer has registered as persistent, until
// something comes after them that may make them persistent. Without the option each function is a look at a pointer.
#pragma once

#include <infiniband/dappledv_failure.h>
#include <librpma.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ibverbs-glue/verbs.hpp"
#include "rpma/memory/descriptor.hpp"

namespace dapple::rpma {

// Threads: confined, as the connection.
class UnflushedWrites {
 public:
  // Watches from now on if the program runs under --check, and if there is memory.
  void start() noexcept;

  bool watches() const noexcept { return first_ != nullptr; }

  void add(const Descriptor& region, size_t size) noexcept {
    if (first_ && region.usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) [[unlikely]]
      note(size);
  }
  // A flush, a read, which flushes what came before it, or a message, by which the program may ask the peer for it.
  void settle() noexcept {
    if (first_) [[unlikely]]
      bytes_ = 0;
  }
  // The program ends the connection by this function. Reports what is left, unless the connection has failed.
  void report(const char* function, ibv_qp* qp) noexcept;

 private:
  [[gnu::cold, gnu::noinline]] void note(size_t size) noexcept;

  std::unique_ptr<dappledv_call> first_;  // null: nothing is watched
  uint64_t bytes_ = 0;
};

}  // namespace dapple::rpma

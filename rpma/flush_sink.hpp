// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory for the answer to a Read that replaces a flush: a page of the connection, whose contents are never used.
#pragma once

#include <infiniband/dappledv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "ibverbs-glue/verbs.hpp"

struct rpma_peer;

namespace dapple::rpma {

inline constexpr size_t kFlushReadSize = 8;  // bytes at most

class FlushSink {
 public:
  FlushSink() = default;
  FlushSink(const FlushSink&) = delete;
  ~FlushSink() { (void)close(); }

  // Returns an RPMA_E_* or 0.
  int make(const rpma_peer& peer) noexcept;
  // Frees as much as possible. Returns the first error, or 0.
  int close() noexcept;

  // size: at most kFlushReadSize.
  ibv_sge segment(size_t size) const {
    return {reinterpret_cast<uintptr_t>(page_), static_cast<uint32_t>(size), mr_->lkey};
  }

 private:
  const dappledv_region_attr* maintenance_ = nullptr;  // the peer's
  void* page_ = nullptr;
  size_t page_size_ = 0;
  verbs::Mr mr_;
};

}  // namespace dapple::rpma

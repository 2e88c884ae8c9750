// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/session.hpp"

namespace dapple::perf {

// Memory, zeroed and in whole pages, that the device and, if it knows the name, the peer may use. Destroyed before its
// session, and after the endpoints that use it.
class Region {
 public:
  Region(Session& session, size_t length, DAT_MEM_PRIV_FLAGS privileges);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  unsigned char* memory() { return memory_.get(); }
  RemoteMemory for_peer() const;
  DAT_LMR_TRIPLET segment(size_t offset, size_t length) const;

  // The sync calls before and after the peer's accesses; on a coherent device they only order accesses.
  void before_peer_reads(size_t offset, size_t length);
  void around_peer_writes(size_t offset, size_t length);

 private:
  struct Free {
    void operator()(unsigned char* memory) const;
  };
  Session& session_;
  std::unique_ptr<unsigned char, Free> memory_;
  DAT_LMR_HANDLE lmr_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context_ = 0;
  DAT_RMR_CONTEXT rmr_context_ = 0;
};

}  // namespace dapple::perf

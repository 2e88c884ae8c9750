// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completion counters: the program sees how many requests of its queue pairs have ended, or how many bytes they had,
// without completions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/objects/kept_memory.hpp"
#include "provider/soft/objects/object_limits.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// What libibverbs calls struct ibv_comp_cntr. Both counts wrap at 2^64.
struct CountedCompletions : KeptMemory {
  provider::CompletionCounter ibv = {};
  bool counts_bytes = false;
  // A thread that reads a count then sees the memory that the counted requests have filled.
  std::atomic<uint64_t> successes{0};
  std::atomic<uint64_t> errors{0};
  std::atomic<uint32_t> users{0};  // queue pairs, once for each call of ibv_qp_attach_comp_cntr()
  CountedObject counted_object;
};

// The counters of a queue pair. Under its lock.
class AttachedCounters final : public roce::RequestObserver {
 public:
  AttachedCounters() = default;
  ~AttachedCounters() { leave_all(); }
  AttachedCounters(const AttachedCounters&) = delete;
  AttachedCounters& operator=(const AttachedCounters&) = delete;

  // Those of provider::CountedOperation that have a counter.
  uint32_t operations() const { return operations_; }
  bool counts_peer() const { return (operations_ & (provider::kCountPeersReads | provider::kCountPeersWrites)) != 0; }
  // None of the operations has a counter yet. The queue pair is a user of the counter.
  void attach(CountedCompletions& counter, uint32_t operations);
  // The queue pair ends: it leaves its counters.
  void leave_all();

  void sent(roce::SendOpcode opcode, uint64_t bytes, roce::CompletionStatus status) override;
  void received(uint64_t bytes, roce::CompletionStatus status) override;
  void executed(bool is_read, uint64_t bytes, bool is_refused) override;

 private:
  void count(uint32_t operation, uint64_t bytes, bool is_success);

  static constexpr size_t kOperations = 6;
  std::array<CountedCompletions*, kOperations> counters_{};  // by the operation's bit
  std::array<CountedCompletions*, kOperations> used_{};      // by the calls that attached one
  size_t uses_ = 0;
  uint32_t operations_ = 0;
};

}  // namespace dapple::soft

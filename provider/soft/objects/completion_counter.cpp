// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/completion_counter.hpp"

#include <bit>
#include <cassert>

#include "provider/soft/objects/use_count.hpp"

namespace dapple::soft {
namespace {

// 0: nobody counts it.
uint32_t operation_of(roce::SendOpcode opcode) {
  switch (opcode) {
    case roce::SendOpcode::kSend:
    case roce::SendOpcode::kSendImmediate:
    case roce::SendOpcode::kSendInvalidate:
      return provider::kCountSends;
    case roce::SendOpcode::kWrite:
    case roce::SendOpcode::kWriteImmediate:
      return provider::kCountWrites;
    case roce::SendOpcode::kRead:
      return provider::kCountReads;
    default:
      return 0;
  }
}

}  // namespace

void AttachedCounters::attach(CountedCompletions& counter, uint32_t operations) {
  assert((operations & operations_) == 0 && (operations & ~provider::kCountedOperations) == 0 && operations != 0);
  assert(uses_ < kOperations);
  for (size_t i = 0; i < kOperations; i++) {
    if ((operations >> i & 1) != 0) counters_[i] = &counter;
  }
  operations_ |= operations;
  used_[uses_++] = &counter;
}

void AttachedCounters::leave_all() {
  while (uses_ > 0) leave(used_[--uses_]->users);
  operations_ = 0;
  counters_ = {};
}

void AttachedCounters::count(uint32_t operation, uint64_t bytes, bool is_success) {
  if ((operation & operations_) == 0) return;
  CountedCompletions& counter = *counters_[static_cast<size_t>(std::countr_zero(operation))];
  if (!is_success) {
    counter.errors.fetch_add(1, std::memory_order_release);
  } else {
    counter.successes.fetch_add(counter.counts_bytes ? bytes : 1, std::memory_order_release);
  }
}

void AttachedCounters::sent(roce::SendOpcode opcode, uint64_t bytes, roce::CompletionStatus status) {
  count(operation_of(opcode), bytes, status == roce::CompletionStatus::kSuccess);
}

void AttachedCounters::received(uint64_t bytes, roce::CompletionStatus status) {
  count(provider::kCountReceives, bytes, status == roce::CompletionStatus::kSuccess);
}

void AttachedCounters::executed(bool is_read, uint64_t bytes, bool is_refused) {
  count(is_read ? provider::kCountPeersReads : provider::kCountPeersWrites, bytes, !is_refused);
}

}  // namespace dapple::soft

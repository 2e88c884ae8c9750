// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Counters of the work of an IA, its EPs and its EVDs. They always count: a counter takes a few instructions, and the
// counted work takes hundreds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "udapl/core/events/event.hpp"

namespace dapple::udapl {

// IA counters that the core does not name elsewhere either belong to the kernel (port_counters.hpp), or count things
// that this provider does not have and stay 0.
enum class IaCounter : uint8_t {
#define IA_COUNTER(NAME, DAT) NAME,
#include "udapl/api/counters.def"
  kEnd,
};
inline constexpr auto kIaCounters = static_cast<size_t>(IaCounter::kEnd);

enum class EpCounter : uint8_t {
#define EP_COUNTER(NAME, DAT) NAME,
#include "udapl/api/counters.def"
  kEnd,
};
inline constexpr auto kEpCounters = static_cast<size_t>(EpCounter::kEnd);

enum class EvdCounter : uint8_t {
#define EVD_COUNTER(NAME, DAT) NAME,
#include "udapl/api/counters.def"
  kPollNotFound,  // never shown on its own
};
inline constexpr auto kEvdCounters = static_cast<size_t>(EvdCounter::kPollNotFound);

// Threads: a counter has one writer at a time, unless all its writers call add_shared(). Any thread may read.
template <class Name, size_t Size, size_t Hidden = 0>
class Counters {
 public:
  void add(Name name, uint64_t amount = 1) { add_at(static_cast<size_t>(name), amount); }
  // Counts one more, and its bytes.
  void add_with_bytes(Name name, uint64_t bytes) {
    add_at(static_cast<size_t>(name), 1);
    add_at(static_cast<size_t>(name) + 1, bytes);
  }
  // For a counter that several threads write.
  void add_shared(Name name, uint64_t amount = 1) {
    values_[static_cast<size_t>(name)].fetch_add(amount, std::memory_order_relaxed);
  }
  // Undoes add_with_bytes().
  void take_back(Name name, uint64_t bytes) {
    add_at(static_cast<size_t>(name), -uint64_t{1});
    add_at(static_cast<size_t>(name) + 1, -bytes);
  }
  uint64_t at(size_t index) const { return values_[index].load(std::memory_order_relaxed); }
  uint64_t at(Name name) const { return at(static_cast<size_t>(name)); }
  // The value read when a counter was last reset. Only the counting threads write the counters themselves, so a reset
  // during traffic is not lost. The control mutex guards it.
  uint64_t& base(size_t index) { return bases_[index]; }

 protected:
  // A plain addition, not a locked one: see the threads above.
  void add_at(size_t index, uint64_t amount) { values_[index].store(at(index) + amount, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, Size + Hidden> values_{};
  std::array<uint64_t, Size> bases_{};
};

using IaCounterSet = Counters<IaCounter, kIaCounters>;

// Two hidden places replace missing counters, so that counting a request takes no branch.
class EpCounterSet : public Counters<EpCounter, kEpCounters, 2> {
 public:
  void add_request(DtoOperation operation, uint64_t bytes) {
    const Indexes at = kIndexes[static_cast<size_t>(operation)];
    add_at(at.requests, 1);
    add_at(at.bytes, bytes);
  }

 private:
  struct Indexes {
    uint8_t requests;
    uint8_t bytes;
  };
  static constexpr auto kIndexes = [] {
    std::array<Indexes, kDtoOperations> indexes{};
    for (Indexes& of : indexes) of = {kEpCounters, kEpCounters + 1};
    const auto with_bytes = [&indexes](DtoOperation operation, EpCounter counter) {
      const auto at = static_cast<uint8_t>(counter);
      indexes[static_cast<size_t>(operation)] = {at, static_cast<uint8_t>(at + 1)};
    };
    with_bytes(DtoOperation::kSend, EpCounter::kPostSend);
    with_bytes(DtoOperation::kSendUd, EpCounter::kPostSendUd);
    with_bytes(DtoOperation::kRdmaWrite, EpCounter::kPostWrite);
    with_bytes(DtoOperation::kRdmaWriteImmed, EpCounter::kPostWriteImm);
    with_bytes(DtoOperation::kRdmaRead, EpCounter::kPostRead);
    indexes[static_cast<size_t>(DtoOperation::kFetchAndAdd)].requests =
        static_cast<uint8_t>(EpCounter::kPostFetchAndAdd);
    indexes[static_cast<size_t>(DtoOperation::kCompareAndSwap)].requests =
        static_cast<uint8_t>(EpCounter::kPostCompareAndSwap);
    return indexes;
  }();
};

class EvdCounterSet : public Counters<EvdCounter, kEvdCounters, 1> {
 public:
  uint64_t at(size_t index) const {
    switch (static_cast<EvdCounter>(index)) {
      case EvdCounter::kDequeue:
        return sum(EvdCounter::kDequeueFound, EvdCounter::kDequeueNotFound);
      case EvdCounter::kPoll:
        return sum(EvdCounter::kPollFound, EvdCounter::kPollNotFound);
      default:
        return Counters::at(index);
    }
  }

 private:
  uint64_t sum(EvdCounter a, EvdCounter b) const { return Counters::at(a) + Counters::at(b); }
};

}  // namespace dapple::udapl

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

// Positions are those of the extensions' DAT_IA_COUNTERS, DAT_EP_COUNTERS and DAT_EVD_COUNTERS. IA counters that are
// not named here either belong to the kernel (port_counters.hpp), or count things that this provider does not have and
// stay 0.
enum class IaCounter : uint8_t {
  kPzCreate = 0,
  kPzFree = 1,
  kLmrCreate = 2,
  kLmrFree = 3,
  kRmrCreate = 4,
  kRmrFree = 5,
  kPspCreate = 6,
  kPspCreateAny = 7,
  kPspFree = 8,
  kRspCreate = 9,
  kRspFree = 10,
  kEvdCreate = 11,
  kEvdFree = 12,
  kEpCreate = 13,
  kEpFree = 14,
  kSrqCreate = 15,
  kSrqFree = 16,
  kRequest = 17,
  kRequestAccepted = 18,
  kRequestRejected = 19,
  kAsyncError = 23,
  kAsyncQpError = 24,
  kAsyncCqError = 25,
  kListen = 26,
  kReqTx = 27,
  kReqRx = 28,
  kRepTx = 29,
  kRepRx = 30,
  kRtuTx = 31,
  kRtuRx = 32,
  kUserRejTx = 33,
  kUserRejRx = 34,
  kActiveEst = 35,
  kPassiveEst = 36,
  kAhReqTx = 37,
  kAhReqRx = 38,
  kAhResolved = 39,
  kDreqTx = 40,
  kDreqRx = 41,
  kErrTimeout = 57,
  kErrRejRx = 59,
};
inline constexpr size_t kIaCounters = 85;

enum class EpCounter : uint8_t {
  kConnect = 0,
  kDisconnect = 1,
  // A counter of bytes follows each of these.
  kPostSend = 2,
  kPostSendUd = 4,
  kPostRecv = 6,
  kPostWrite = 8,
  kPostWriteImm = 10,
  kPostRead = 12,
  kRecv = 16,
  kRecvUd = 18,
  kRecvRdmaImm = 22,
  // These have no counter of bytes.
  kPostCompareAndSwap = 14,
  kPostFetchAndAdd = 15,
};
inline constexpr size_t kEpCounters = 24;

enum class EvdCounter : uint8_t {
  kWait = 0,
  kWaitBlocked = 1,
  kWaitNotify = 2,
  kDequeue = 3,  // not counted, but the sum of the next two
  kDequeueFound = 4,
  kDequeueNotFound = 5,
  kPoll = 6,  // the sum of the next and kPollNotFound
  kPollFound = 7,
  kConnectionCallback = 8,
  kDtoCallback = 9,
  kPollNotFound = 10,  // never shown on its own
};
inline constexpr size_t kEvdCounters = 10;

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
  static constexpr size_t size() { return Size; }

 protected:
  // A plain addition, not a locked one: see the threads above.
  void add_at(size_t index, uint64_t amount) { values_[index].store(at(index) + amount, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, Size + Hidden> values_{};
};

using IaCounterSet = Counters<IaCounter, kIaCounters>;

// Two hidden places replace missing counters, so that counting a request takes no branch.
class EpCounterSet : public Counters<EpCounter, kEpCounters, 2> {
 public:
  void add_request(DtoOperation operation, uint64_t bytes) {
    const Places at = kPlaces[static_cast<size_t>(operation)];
    add_at(at.requests, 1);
    add_at(at.bytes, bytes);
  }

 private:
  struct Places {
    uint8_t requests;
    uint8_t bytes;
  };
  static constexpr auto kPlaces = [] {
    std::array<Places, kDtoOperations> places{};
    for (Places& of : places) of = {kEpCounters, kEpCounters + 1};
    const auto with_bytes = [&places](DtoOperation operation, EpCounter counter) {
      const auto at = static_cast<uint8_t>(counter);
      places[static_cast<size_t>(operation)] = {at, static_cast<uint8_t>(at + 1)};
    };
    with_bytes(DtoOperation::kSend, EpCounter::kPostSend);
    with_bytes(DtoOperation::kSendUd, EpCounter::kPostSendUd);
    with_bytes(DtoOperation::kRdmaWrite, EpCounter::kPostWrite);
    with_bytes(DtoOperation::kRdmaWriteImmed, EpCounter::kPostWriteImm);
    with_bytes(DtoOperation::kRdmaRead, EpCounter::kPostRead);
    places[static_cast<size_t>(DtoOperation::kFetchAndAdd)].requests =
        static_cast<uint8_t>(EpCounter::kPostFetchAndAdd);
    places[static_cast<size_t>(DtoOperation::kCompareAndSwap)].requests =
        static_cast<uint8_t>(EpCounter::kPostCompareAndSwap);
    return places;
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

// The value read when a counter was last reset. Only the counting threads write the counters themselves, so a reset
// during traffic is not lost.
template <size_t Size>
using CounterBases = std::array<uint64_t, Size>;

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What an IA and its EPs have done so far, counted always: a counter is a few instructions where the work is hundreds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "udapl/core/event.hpp"

namespace dapple::dat {

// Positions are those of the extensions' DAT_IA_COUNTERS and DAT_EP_COUNTERS. Those that are not named here belong to
// messages the kernel's connection manager handles by itself, and stay 0.
enum class IaCounter : uint8_t {
  kPzCreate = 0,
  kPzFree = 1,
  kLmrCreate = 2,
  kLmrFree = 3,
  kPspCreate = 6,
  kPspCreateAny = 7,
  kPspFree = 8,
  kRspCreate = 9,
  kRspFree = 10,
  kEvdCreate = 11,
  kEvdFree = 12,
  kEpCreate = 13,
  kEpFree = 14,
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
  kDreqTx = 40,
  kDreqRx = 41,
  kErrTimeout = 57,
  kErrRejRx = 59,
};
inline constexpr size_t kIaCounters = 85;

enum class EpCounter : uint8_t {
  kConnect = 0,
  kDisconnect = 1,
  // Each of these is followed by one of bytes.
  kPostSend = 2,
  kPostRecv = 6,
  kPostWrite = 8,
  kPostWriteImm = 10,
  kPostRead = 12,
  kRecv = 16,
  kRecvRdmaImm = 22,
};
inline constexpr size_t kEpCounters = 24;

// Threads: a counter has one writer at a time; readers are any.
template <class Name, size_t Size>
class Counters {
 public:
  void add(Name name, uint64_t amount = 1) { add_at(static_cast<size_t>(name), amount); }
  // One more, and its bytes.
  void add_with_bytes(Name name, uint64_t bytes) {
    add_at(static_cast<size_t>(name), 1);
    add_at(static_cast<size_t>(name) + 1, bytes);
  }
  // As if add_with_bytes() had not been.
  void take_back(Name name, uint64_t bytes) {
    add_at(static_cast<size_t>(name), -uint64_t{1});
    add_at(static_cast<size_t>(name) + 1, -bytes);
  }
  uint64_t at(size_t index) const { return values_[index].load(std::memory_order_relaxed); }
  void reset(size_t index) { values_[index].store(0, std::memory_order_relaxed); }
  static constexpr size_t size() { return Size; }

 private:
  // No locked operation: see the threads above.
  void add_at(size_t index, uint64_t amount) { values_[index].store(at(index) + amount, std::memory_order_relaxed); }
  std::array<std::atomic<uint64_t>, Size> values_{};
};

using IaCounterSet = Counters<IaCounter, kIaCounters>;
using EpCounterSet = Counters<EpCounter, kEpCounters>;

}  // namespace dapple::dat

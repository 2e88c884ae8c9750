// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of requests that the program has just posted: it cannot know yet that the device no longer needs it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/buffer_copy.hpp"
#include "provider/soft/check/lent/mapped_memory.hpp"
#include "provider/soft/check/lent/short_list.hpp"
#include "provider/soft/check/reports/owner.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// A piece of memory that a request names.
struct Piece {
  uintptr_t begin = 0, end = 0;
  uint32_t lkey = 0;

  bool overlaps(uintptr_t from, uintptr_t to) const { return begin < to && from < end; }
};

using Pieces = ShortList<Piece, 2>;

// The memory of one send request.
struct Loan {
  uint64_t number = 0;  // add() gives it
  const void* queue_pair = nullptr;
  Owner owner;
  bool has_result = false;  // the device writes there
  bool is_signaled = false;
  uint64_t returned = 0;  // the time when the post has returned; 0 before that
  Pieces pieces;
  KnownStack posted;
  SharedCopy copy = nullptr;             // of a signaled request that sends bytes
  bool overwritten = false;              // the device has stored there since
  const void* address_handle = nullptr;  // of a datagram
};

// A request whose bytes the program has changed too early.
struct ChangedLoan {
  Loan loan;
  uint64_t at;  // the first byte that differs
};

// Internally locked; the lock is a leaf. free() may take it. The times are those of now_ns().
class LentMemory {
 public:
  explicit LentMemory(MappedMemory& mapped) : mapped_(mapped) {}

  // The program posts the request. Returns its number.
  uint64_t add(Loan loan);
  // The copy is made after add(), so that the device cannot store there unnoticed meanwhile.
  void keep(uint64_t number, SharedCopy copy);
  // The post has returned.
  void returned(uint64_t number, uint64_t now = now_ns());
  // The device has refused it.
  void remove(uint64_t number);
  // The program may have learnt the fate of any request: it is about to get a completion. Returns the requests whose
  // bytes differ from their copies.
  std::vector<ChangedLoan> end_all(uint64_t now = now_ns());
  // A peer has written to the program's memory, by the queue pair with this number: the program may look there for an
  // answer. The writes of a queue pair of this process tell nothing about the fate of its own requests.
  void written_by(uint32_t qpn);
  // The device has written there itself, so a copy of these bytes proves nothing.
  void overwritten(const std::byte* memory, size_t size);
  // The program has given this memory back.
  void forget_memory(const void* memory, size_t size);
  // The program deregisters the key: nobody tells what becomes of its memory from now on.
  void forget_key(uint32_t lkey);
  // The queue pair ends, or drops its requests.
  void forget(const void* queue_pair);
  void forget_all();

  // A request that uses some of these bytes, and that certainly is not complete for the program. `lkey`: by this key
  // alone.
  std::optional<Loan> user_of(const void* memory, size_t size, std::optional<uint32_t> lkey = std::nullopt,
                              uint64_t now = now_ns());
  // The same for a datagram with this address handle.
  std::optional<Loan> user_of_handle(const void* address_handle, uint64_t now = now_ns());
  // Any request with some of these bytes.
  std::optional<Loan> any_in(const Pieces& pieces);
  // A request of the queue pair whose result comes into some of these bytes.
  std::optional<Loan> result_in(const void* queue_pair, const Pieces& pieces);

  Mutex& mutex() { return mutex_; }

  // If there are more, the oldest are forgotten.
  static constexpr size_t kMax = 1024;

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  Loan* numbered(uint64_t number);
  std::optional<uint64_t> change_in(const Loan& loan);

  MappedMemory& mapped_;
  Mutex mutex_{LockRank::kLentMemory};
  std::atomic<bool> any_{false};
  uint64_t next_number_ = 0;
  std::deque<Loan> loans_;
};

}  // namespace dapple::soft::check

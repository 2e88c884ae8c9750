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
#include <unordered_map>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/buffer_copy.hpp"
#include "provider/soft/check/lent/mapped_memory.hpp"
#include "provider/soft/check/lent/page_counts.hpp"
#include "provider/soft/check/lent/short_list.hpp"
#include "provider/soft/check/lent/unpolled_ids.hpp"
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
  uint64_t id = 0;      // the wr_id
  Owner owner;
  bool has_result = false;  // the device writes there
  bool is_signaled = false;
  uint64_t returned = 0;  // the time when the post has returned; 0 before that
  uint64_t complete = 0;  // the time when the device has completed it, or a later signaled one; 0 before that
  Pieces pieces;
  KnownStack posted;
  SharedCopy copy = nullptr;             // of a request that sends bytes
  bool overwritten = false;              // the device has stored there since
  const void* address_handle = nullptr;  // of a datagram
};

// A request whose bytes the program has changed too early.
struct ChangedLoan {
  Loan loan;
  uint64_t at;      // the first byte that differs
  bool is_certain;  // false: the peer may have told the program outside of verbs that the request is over
};

// A loan *ends* when the program may know that the device no longer needs its memory. A signaled request without a loan
// stays in its place until its completion is polled, because this tells of all earlier requests of the queue pair. One
// that is posted while no request has a place gets none, and only its id is kept: the next completion with this id is
// its own, and not that of a later request.
//
// Internally locked; the lock is a leaf. free() may take it. The times are those of now_ns(); kNow is the present one,
// which is read only where it matters, and some milliseconds old where that does not matter.
class LentMemory {
 public:
  explicit LentMemory(MappedMemory& mapped) : mapped_(mapped) {}

  static constexpr uint64_t kNone = UINT64_MAX;         // no number
  static constexpr uint64_t kEarlier = UINT64_MAX - 1;  // that of a signaled request without a place
  static constexpr uint64_t kNow = 0;

  // The program posts the request. Returns its number; kNone if nothing is known of it.
  uint64_t add(Loan loan);
  // The same for a signaled request without memory.
  uint64_t add_signaled(uint32_t qpn, uint64_t id);
  // The copy is made after add(), so that the device cannot store there unnoticed meanwhile.
  void keep(uint32_t qpn, uint64_t number, SharedCopy copy);
  // The post has returned.
  void returned(uint32_t qpn, uint64_t number, uint64_t now = kNow);
  // The device has refused it.
  void remove(uint32_t qpn, uint64_t number, uint64_t id);
  // The device has completed the oldest signaled request with this id that has a place, or one without a place, and so
  // all earlier ones. The difference only lets the loan count for a shorter time.
  void completed(uint32_t qpn, uint64_t id, uint64_t now = kNow);
  // The program has polled that completion. The loans of this request and of the earlier ones of the queue pair end.
  // Returns the requests whose bytes differ from their copies.
  std::vector<ChangedLoan> polled(uint32_t qpn, uint64_t id, uint64_t now = kNow);
  // The program is about to get bytes of a peer, which may tell it the fate of any request: a request behind a fence
  // tells of the Reads before it. All loans end. Returns the signaled requests whose bytes differ from their copies.
  std::vector<ChangedLoan> peer_told(uint64_t now = kNow);
  // The same by an RDMA Write of the queue pair with this number, but the program may look later. The Writes of a queue
  // pair of this process tell nothing about the fate of its own requests.
  void written_by(uint32_t qpn);
  // The device has written there itself, so a copy of these bytes proves nothing.
  void overwritten(const std::byte* memory, size_t size);
  // The program has given this memory back.
  void forget_memory(const void* memory, size_t size);
  // The program deregisters the key: nobody tells what becomes of its memory from now on.
  void forget_key(uint32_t lkey);
  // The queue pair ends, fails, or drops its requests.
  void forget(uint32_t qpn);
  void forget_all();

  // A request that uses some of these bytes, and that certainly is not complete for the program. `lkey`: by this key
  // alone.
  std::optional<Loan> user_of(const void* memory, size_t size, std::optional<uint32_t> lkey = std::nullopt,
                              uint64_t now = kNow);
  // The same for a datagram with this address handle.
  std::optional<Loan> user_of_handle(const void* address_handle, uint64_t now = kNow);
  // Any request with some of these bytes.
  std::optional<Loan> any_in(const Pieces& pieces);
  // A request of the queue pair whose result comes into some of these bytes.
  std::optional<Loan> result_in(uint32_t qpn, const Pieces& pieces);

  Mutex& mutex() { return mutex_; }

  // If a process has more, a queue pair forgets its oldest one for each further one.
  static constexpr size_t kMax = 16384;

 private:
  struct OfQueuePair {
    std::deque<Loan> loans;  // in the order of their posts
    size_t complete = 0;     // the first so many are complete, or not signaled
    size_t lent = 0;         // so many have not ended
    UnpolledIds earlier;     // signaled requests without a place, whose completions come before all of these
  };

  // Without the lock. False: no request uses memory.
  bool any() const { return lent_.load(std::memory_order_acquire) != 0; }
  // Asserts the conditions that hold between two calls.
  void assert_consistent(const OfQueuePair& queue) const;
  OfQueuePair* find(uint32_t qpn);
  Loan* numbered(uint32_t qpn, uint64_t number);
  std::optional<uint64_t> change_in(const Loan& loan);
  void take_back(OfQueuePair& queue, const Loan& loan);
  void end(OfQueuePair& queue, Loan& loan);
  void drop_first(OfQueuePair& queue);
  void drop_ended(OfQueuePair& queue);
  template <typename Use>
  void for_each_lent(Use use);
  template <typename Fits>
  std::optional<Loan> first(Fits fits);

  MappedMemory& mapped_;
  Mutex mutex_{LockRank::kLentMemory};
  std::atomic<size_t> lent_{0};  // loans that have not ended; changed with the lock, as count_
  uint64_t next_number_ = 0;
  std::atomic<size_t> count_{0};   // of all requests
  UnpolledIds::Total earlier_{0};  // of all queue pairs
  std::unordered_map<uint32_t, OfQueuePair> queues_;
  PageCounts pages_;  // of the loans that have not ended
};

}  // namespace dapple::soft::check

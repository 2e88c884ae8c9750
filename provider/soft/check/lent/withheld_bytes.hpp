// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The bytes that messages, Reads and atomics have brought, until the program polls the completion: a program that looks
// earlier finds kPattern in their place, or closed pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/buffer_copy.hpp"
#include "provider/soft/check/lent/closed_pages.hpp"
#include "provider/soft/check/lent/lent_memory.hpp"
#include "provider/soft/check/lent/mapped_memory.hpp"
#include "provider/soft/check/reports/owner.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// The bytes of a request are *released* when they come into their place. If two outstanding requests have a byte in
// common, the bytes of neither are withheld. A release that comes too early only hides a mistake of the program. One
// that came too late would break a correct program.
//
// Internally locked; the lock is a leaf. free() may take it.
class WithheldBytes {
 public:
  static constexpr std::byte kPattern{0xdb};
  static constexpr uint64_t kNone = UINT64_MAX;         // no number
  static constexpr uint64_t kEarlier = UINT64_MAX - 1;  // that of a request for which no bytes wait

  explicit WithheldBytes(MappedMemory& mapped) : mapped_(mapped) {}

  // A request into whose memory the device writes.
  struct Request {
    const void* receives = nullptr;  // the receive queue that has it; null for a Read or an atomic
    uint64_t id = 0;
    Owner owner;
    Pieces pieces;
    KnownStack posted;
  };
  // A request whose bytes the program has changed between the arrival, or before it, and the poll.
  struct Changed {
    Request request;
    uint64_t at;  // the first byte that differs
  };

  // A message that another message replaces, before the program has polled the completion of the first.
  struct Overwritten {
    Request first;
    std::optional<Request> second;  // none if nobody knows
    uint64_t at;                    // the first byte of the first message that differs
  };

  // The program posts the request. Returns its number. `fills`: the pattern is in the whole buffer from now on.
  uint64_t add(Request request, bool fills);
  // The device has refused it.
  void remove(uint64_t number);
  // The program posts a request that asks for a completion, after add() if it has a result. Returns its own number;
  // kEarlier if no bytes wait for the completion.
  uint64_t add_signaled(uint32_t qpn, uint64_t id);
  // The device has refused it.
  void remove_signaled(uint32_t qpn, uint64_t number, uint64_t id);

  // The device brings bytes for a request of this queue pair, or for one of its shared receive queue. False if they are
  // to be stored in the memory itself.
  bool store(uint32_t qpn, std::byte* memory, const std::byte* from, size_t size);
  // False: no message can be replaced now.
  bool may_overwrite() const { return any_overwritable_.load(std::memory_order_relaxed); }
  // The device is about to store a part of a message into the memory itself. Returns the message whose bytes it
  // replaces by others, once for each message.
  std::optional<Overwritten> overwrite(const std::byte* memory, const std::byte* from, size_t size);
  // Something else uses the memory: another request, or a peer.
  void yield(const void* memory, size_t size);
  void yield(const Pieces& pieces);
  // The program deregisters the key.
  void yield_key(uint32_t lkey);
  // The program has given this memory back: it stays as it is.
  void forget_memory(const void* memory, size_t size);

  // The completion of a receive is about to enter the completion queue. The message has `size` bytes in its memory.
  void receive_completes(const void* receives, uint64_t id, uint32_t qpn, size_t size);
  // The program has polled a completion. Returns the requests whose bytes it has changed before.
  std::vector<Changed> polled(uint32_t qpn, uint64_t id, bool is_receive);
  // The queue pair has failed, drops its requests, or ends. `receives`: its own queue, or the shared one.
  void end(uint32_t qpn, const void* receives);
  // The shared receive queue ends.
  void end(const void* receives);
  // In a child of fork(): the requests are its parent's. The child's memory stays as it is.
  void forget_all();

  Mutex& mutex() { return mutex_; }

 private:
  struct User : Request {
    User(uint64_t its_number, Request posted_request) : Request(std::move(posted_request)), number(its_number) {}

    const uint64_t number;
    uint32_t qpn = 0;  // of the queue pair that uses it; 0: none has begun to
    // The bytes at the post, and then those that have arrived. Null: they are not withheld.
    std::unique_ptr<BufferCopy> bytes;
    ClosedPages closed;  // only while they are withheld
    size_t arrived = 0;
    bool is_complete = false;  // its completion is in the completion queue
    size_t filled = 0;         // the first bytes in memory that have the pattern, but for those in closed pages
    std::optional<uint64_t> changed;
  };
  struct UserPart {
    uintptr_t end;
    User* user;
    size_t offset;  // of the first byte in the request
  };
  struct Signaled {
    uint64_t number;  // greater than those of the earlier requests
    uint64_t id;
  };
  // The first ones go first, mostly.
  using Users = std::deque<std::unique_ptr<User>>;
  struct OfQueuePair {
    Users results;                  // Reads and atomics; their numbers go up
    std::deque<Signaled> signaled;  // since the first of these
    UnpolledIds earlier;            // those before
    Users complete;                 // receives whose completions have not been polled
  };

  // If there are more, the oldest are forgotten.
  static constexpr size_t kMaxOverwritable = 64;

  bool any() const { return any_.load(std::memory_order_acquire); }
  // The same for requests that wait for their completions alone.
  bool any_earlier() const { return earlier_.load(std::memory_order_acquire) != 0; }
  // With the lock.
  bool is_used(uintptr_t begin, uintptr_t end) const;
  std::map<uintptr_t, UserPart>::iterator withheld_at(uintptr_t begin, uintptr_t end);
  void withhold(User& user, bool fills);
  void close(User& user, size_t size);
  void yield_range(uintptr_t begin, uintptr_t end);
  void may_be_overwritten(User& user);
  std::optional<Request> waiting_at(uintptr_t begin, uintptr_t end) const;
  void stop_withholding(User& user);
  static void note_change_of_open(User& user, size_t offset, const std::byte* memory, size_t size);
  static void note_change(User& user, size_t offset, const std::byte* memory, size_t size);
  void put_into_place(User& user);
  bool remove_from(Users& users, uint64_t number);
  std::optional<Changed> release(Users& users, const Users::iterator& which);
  void take_out(User& user);
  void assert_consistent() const;

  MappedMemory& mapped_;
  Mutex mutex_{LockRank::kWithheldBytes};
  std::atomic<bool> any_{false};
  std::atomic<bool> any_overwritable_{false};
  uint64_t next_number_ = 0;                   // of a user, or of a request that asks for a completion
  size_t count_ = 0;                           // of users
  UnpolledIds::Total earlier_{0};              // of all queue pairs; changed with the lock
  std::map<uintptr_t, UserPart> withheld_;     // by their first bytes; they do not overlap
  std::multimap<uintptr_t, UserPart> others_;  // the pieces of the other users; they may overlap
  uintptr_t longest_other_ = 0;                // no other piece has been longer
  std::deque<User*> overwritable_;             // those of the others that are messages and complete, in their order
  std::map<const void*, Users> receives_;      // that wait, by their queues
  std::map<uint32_t, OfQueuePair> queue_pairs_;
};

}  // namespace dapple::soft::check

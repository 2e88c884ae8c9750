// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requests whose wr_id may be the address of a block of the program's heap, until the poll of their completions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "provider/common/mutex.hpp"
#include "provider/member/heap.hpp"
#include "provider/soft/check/reports/owner.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// A request that is forgotten too early only hides a mistake of the program.
//
// Internally locked, by the lock of WithheldBytes, which hears of the same polls. free() may take it.
class PostedContexts {
 public:
  static constexpr uint64_t kNone = 0;  // the number of no request
  static constexpr size_t kMax = 1 << 14;

  struct Request {
    const void* receives = nullptr;  // the receive queue that has it; null for a send request
    Owner owner;
    KnownStack posted;
  };
  // A request whose context the program has freed before the poll.
  struct Freed {
    Request request;
    Stack freed;
  };

  explicit PostedContexts(Mutex& shared) : mutex_(shared) {}

  // Before this call, nothing is noted. `interest` outlives this object.
  void watch(HeapInterest& interest) { interest_.store(&interest, std::memory_order_release); }
  // False: there is nothing to note. Most programs that use no addresses use small numbers.
  bool may_be_context(uint64_t id) const;

  // The program posts a request that has a completion. If a block at this address was freed before, that block is
  // forgotten.
  // Returns its number; kNone if there are kMax requests.
  uint64_t add(uint64_t id, const Request& request);
  // The program posts a request without a completion.
  void forget_freed(uint64_t id);
  // The device has refused it.
  void remove(uint64_t id, uint64_t number);

  // True if the wr_id of a request is an address in the block.
  bool has_context(const void* block, size_t size);
  // The program gives the block back.
  void mark_freed(const void* block, size_t size, const Stack& stack);
  // The program has polled a completion.
  std::optional<Freed> polled(uint32_t qpn, uint64_t id, bool is_receive);

  // The queue pair has failed, drops its requests, or ends.
  void end(uint32_t qpn);
  // The shared receive queue ends.
  void end(const void* receives);
  void forget_all();

 private:
  struct Posted {
    uint64_t number;
    Request request;
    std::unique_ptr<const Stack> freed;
  };

  // With the lock.
  void drop_freed(uint64_t id);
  void publish();

  std::atomic<HeapInterest*> interest_{nullptr};
  Mutex& mutex_;
  uint64_t last_number_ = kNone;
  std::multimap<uint64_t, Posted> requests_;  // by their ids; those of one id in the order of the posts
};

}  // namespace dapple::soft::check

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The client of a job: one connection to a server's region. fio's offsets are offsets in that region.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <vector>

#include "fio/host.hpp"
#include "fio/messages.hpp"
#include "fio/objects.hpp"

namespace dapple::fio {

// Confined to the job's thread. A write completes when it is as persistent as the server can make it. Writes that
// follow each other in the region, and that fio submits together (iodepth_batch=), share a flush. A request that fails
// completes with an error, and after the first error the connection is not used any more.
class Client {
 public:
  // Blocks until the server has accepted or librdmacm gives up. nullptr, after a line, if there is no connection.
  [[nodiscard]] static std::unique_ptr<Client> connect(const Job& job, const Layout& layout) noexcept;
  ~Client();
  Client(const Client&) = delete;

  // The memory of all of fio's buffers; nullptr, after a line, if there is none.
  [[nodiscard]] void* allocate(std::size_t size) noexcept;
  void release() noexcept;

  // True if the request is complete; otherwise it will be among the events.
  [[nodiscard]] bool queue(const Request& request) noexcept;
  // Flushes the writes that wait for a flush.
  void commit() noexcept;
  // Waits for at least minimum events, or until the time is over if there is a limit. Returns the number of events, at
  // most maximum.
  [[nodiscard]] unsigned reap(unsigned minimum, unsigned maximum, const timespec* timeout) noexcept;
  // The address of fio's request of the last reap; index counts from 0.
  [[nodiscard]] void* event(unsigned index) const noexcept { return ready_[index]; }

 private:
  // Requests of one direction in the order of posting, in which they complete.
  class Posted {
   public:
    explicit Posted(std::uint32_t depth) : requests_(depth) {}
    // Returns the number of requests so far.
    std::uint64_t push(void* request) noexcept {
      requests_[pushed_ % requests_.size()] = request;
      return ++pushed_;
    }
    [[nodiscard]] void* pop() noexcept { return requests_[popped_++ % requests_.size()]; }
    [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
    [[nodiscard]] std::uint64_t popped() const noexcept { return popped_; }
    [[nodiscard]] bool empty() const noexcept { return popped_ == pushed_; }

   private:
    std::vector<void*> requests_;
    std::uint64_t pushed_ = 0;
    std::uint64_t popped_ = 0;
  };

  Client(const Job& job, const Layout& layout);
  [[nodiscard]] bool establish() noexcept;
  [[nodiscard]] bool take_offer() noexcept;
  [[nodiscard]] std::uint64_t local_offset(const Request& request) const noexcept;
  [[nodiscard]] bool fits(const Request& request) noexcept;
  void post(const Request& request) noexcept;
  [[nodiscard]] bool post_flush() noexcept;
  [[nodiscard]] bool ask_for_flush() noexcept;
  void poll() noexcept;
  void take_completion(const ibv_wc& completion) noexcept;
  void take_answer(std::uint64_t up_to) noexcept;
  void complete_answered() noexcept;
  void complete(Posted& posted, std::uint64_t up_to) noexcept;
  void await_posted() noexcept;
  [[nodiscard]] bool connection_stands() noexcept;
  // Fails all posted requests.
  void give_up(int error) noexcept;

  const Job job_;
  const Layout& layout_;
  const std::uint32_t depth_;
  const void* const file_;
  // Destroyed in reverse order: each before the members above it.
  Peer peer_;
  Mapping slots_memory_;
  Region slots_region_;
  RemoteRegion remote_;
  Mapping buffers_;
  Region buffers_region_;
  Connection connection_;
  rpma_cq* completions_ = nullptr;
  int events_ = -1;
  std::uint64_t remote_size_ = 0;
  rpma_flush_type flush_type_ = RPMA_FLUSH_TYPE_VISIBILITY;

  Posted reads_;
  Posted writes_;
  // The last posted writes, which were not flushed yet.
  struct {
    std::uint64_t offset;
    std::uint64_t length;
  } unflushed_ = {};
  // The part for the method with messages.
  std::uint64_t flushes_ = 0;
  std::uint64_t answers_ = 0;
  // Numbers of writes: those whose flush was asked for, and those whose flush was answered.
  std::uint64_t asked_up_to_ = 0;
  std::uint64_t answered_up_to_ = 0;

  std::vector<void*> ready_;
  unsigned reaped_ = 0;
  bool failed_ = false;
};

}  // namespace dapple::fio

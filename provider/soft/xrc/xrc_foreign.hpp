// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The receives and the memory of shared receive queues that other processes have in the domain of a receiving queue
// pair. Each call is a question to the process of the queue (shared_domain.hpp), and blocks until its answer.
#pragma once

#include <stdint.h>

#include "provider/soft/xrc/shared_domain.hpp"
#include "provider/soft/xrc/target_memory.hpp"

namespace dapple::soft {

// Instead of a protection domain: the number of a shared receive queue of another process. That process finds the
// protection domain.
inline constexpr uint32_t kForeignQueue = 1u << 31;
constexpr bool is_foreign(uint32_t domain) {
  return (domain & kForeignQueue) != 0;
}

// Guarded by the queue pair's lock.
class XrcForeign final : public TargetMemory {
 public:
  // `shared`: null if no other process can have the domain.
  explicit XrcForeign(SharedXrcDomain* shared) : shared_(shared) {}
  XrcForeign(const XrcForeign&) = delete;
  XrcForeign& operator=(const XrcForeign&) = delete;

  // The queue pair has ended.
  void leave();
  // It is in RESET, and has dropped its requests.
  void reset();

  // A living process has this queue.
  bool has(uint32_t srq) const;
  bool take(uint32_t srq, uint32_t qpn, roce::ReceiveRequest& request);
  // The receive that was taken last.
  void complete(const roce::Completion& completion);

  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override;

 private:
  SharedXrcDomain::Asked ask(uint32_t member, XrcQuestion& question, const std::byte* data, XrcAnswer& answer,
                             std::byte* result);
  // The same of the member with the queue that `who` names.
  struct Exchange {
    const std::byte* sent = nullptr;  // question.size bytes, or null
    std::byte* received = nullptr;    // room for as many, or null
    uint64_t* original = nullptr;     // of an atomic, or null
  };
  roce::Fault ask(roce::Accessor who, XrcQuestion question, const Exchange& exchange);

  SharedXrcDomain* const shared_;
  uint64_t asked_ = 0;                              // members that know this queue pair
  uint32_t taken_from_ = SharedXrcDomain::kNobody;  // the member that waits for the completion of a receive
  uint32_t qpn_ = 0;
  struct LastQuestion {
    XrcQuestion question;
    bool is_open = false;  // it has no answer
  };
  LastQuestion last_once_;  // that must not be executed twice; others may come before it is asked again
  LastQuestion last_other_;
};

}  // namespace dapple::soft

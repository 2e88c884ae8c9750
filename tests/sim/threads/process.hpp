// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program with an open device: what libibverbs and dappled do for it, as far as it needs them.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include <cstddef>

#include "provider/soft/abi/plugin.hpp"

namespace dapple::sim {

// The device of this process. Opens it at the first call.
ibv_context* device();
// The name of the reason for which a peer may not copy in the memory of this process, or null.
const char* refused_right();

// Without a poll.
void rest(uint64_t nanoseconds);

// A queue pair with its completion queue, channel and memory, all of one thread.
class Endpoint {
 public:
  static constexpr uint32_t kDepth = 64;

  static constexpr uint32_t kWrites = 16;  // places that the peer may write to
  static constexpr size_t kLongestWrite = 8256;

  struct Options {
    size_t message;
    ibv_qp_type type = IBV_QPT_RC;
    uint32_t receives = kDepth;  // posted before it is connected
  };
  explicit Endpoint(const Options& options);
  uint32_t number() const { return qp_->qp_num; }
  void connect(uint32_t peer);

  // The memory that the peer may write to.
  struct Target {
    uint64_t address;
    uint32_t key;
  };
  Target target() const { return {reinterpret_cast<uintptr_t>(written(0)), mr_->rkey}; }
  // Without a completion. All bytes are `byte`.
  void post_write(const Target& peer, uint32_t place, size_t size, std::byte byte);
  const std::byte* written(uint32_t place) const { return messages_end() + place * kLongestWrite; }

  void post_receive(uint32_t slot);
  // The message begins with this number.
  void post_send(uint32_t slot, uint64_t number);
  struct Completion {
    bool any = false;
    bool is_receive = false;
    uint32_t slot = 0;
  };
  Completion poll();
  uint64_t received(uint32_t slot) const;
  // Sleeps until the completion queue has an event. Call it after arm() and a poll in vain.
  void arm();
  void await_event();

 private:
  std::byte* room(uint32_t slot, bool receive) const { return memory_ + (receive ? kDepth + slot : slot) * size_; }
  std::byte* messages_end() const { return memory_ + 2 * kDepth * size_; }
  ibv_sge piece(const std::byte* at, size_t size) const;
  void post(ibv_send_wr& request, ibv_sge& piece);

  const size_t size_;
  const ibv_qp_type type_;
  const uint32_t receives_;
  ibv_comp_channel channel_ = {};
  ibv_pd* pd_;
  ibv_cq* cq_;
  ibv_qp* qp_;
  std::byte* memory_;
  ibv_mr* mr_;
};

}  // namespace dapple::sim

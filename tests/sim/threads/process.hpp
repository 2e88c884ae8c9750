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

// A queue pair with its completion queue, channel and memory, all of one thread.
class Endpoint {
 public:
  static constexpr uint32_t kDepth = 64;

  explicit Endpoint(size_t message);
  uint32_t number() const { return qp_->qp_num; }
  void connect(uint32_t peer);

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
  ibv_sge piece(uint32_t slot, bool receive) const;

  const size_t size_;
  ibv_comp_channel channel_ = {};
  ibv_pd* pd_;
  ibv_cq* cq_;
  ibv_qp* qp_;
  std::byte* memory_;
  ibv_mr* mr_;
};

}  // namespace dapple::sim

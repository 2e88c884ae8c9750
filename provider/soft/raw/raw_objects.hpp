// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The objects around raw packet queue pairs: flows, work queues, and tables of work queues for receive side scaling.
#pragma once

#include <stdint.h>

#include <memory>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/raw/flow_counters.hpp"
#include "provider/soft/raw/flow_table.hpp"
#include "provider/soft/raw/frame_port.hpp"
#include "provider/soft/raw/raw_queue_pair.hpp"
#include "provider/soft/raw/toeplitz.hpp"

namespace dapple::soft {

// A work queue is a queue pair that only receives.
struct Wq : KeptMemory {
  ibv_wq ibv = {};
  Qp qp;
  Users users{0};  // tables
};

struct RwqTable : KeptMemory {
  ibv_rwq_ind_table ibv = {};
  uint32_t size = 0;  // a power of two
  std::unique_ptr<Wq*[]> queues;
  Users users{0};  // queue pairs
  CountedObject counted_object;
};

struct Counters : KeptMemory {
  ibv_counters ibv = {};
  FlowCounters counters;
  Users users{0};  // flows
};

struct Flow : KeptMemory {
  ibv_flow ibv = {};
  FlowEntry entry;
};

// The part of a raw packet queue pair. A work queue has none.
struct RawQp final : FrameSender {
  explicit RawQp(Qp& queue_pair) : qp(queue_pair) {}

  size_t send(std::span<const iovec> frames, int& error) override {
    const size_t sent = port->send(frames, error);
    uint64_t bytes = 0;
    for (size_t i = 0; i < sent; i++) bytes += frames[i].iov_len;
    qp.traffic->sent_packets.add(sent);
    qp.traffic->sent_bytes.add(bytes);
    return sent;
  }
  // The queue pair that gets the frame: this one, or the work queue that the frame's hash selects.
  Qp& receiver_of(const Frame& frame) const {
    return table == nullptr ? qp : table->queues[hash_of(frame, hash) & (table->size - 1)]->qp;
  }

  Qp& qp;
  FramePort* port = nullptr;
  Pacer pacer;                // under the queue pair's lock
  RwqTable* table = nullptr;  // of a queue pair with receive side scaling
  RxHash hash;
  Users flows{0};
};

}  // namespace dapple::soft

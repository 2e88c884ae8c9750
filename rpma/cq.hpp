// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "ibverbs-glue/verbs.hpp"
#include "rpma/memory/peer.hpp"

// A CQ that is armed from the beginning, and again after each event. Threads: internally locked.
struct rpma_cq {
  dapple::verbs::CompChannel own_channel;  // null where channel is a connection's
  ibv_comp_channel* channel = nullptr;
  dapple::verbs::Cq cq;    // destroyed before its channel
  bool has_slots = false;  // wr_id is the address of a Slot
  std::mutex slots_mutex;  // held from a poll until the slots of its completions are resolved
  std::atomic<unsigned> unacknowledged{0};

  ~rpma_cq();

  // Notes an event for this CQ and arms it again. An RPMA_E_* or 0.
  int took_event() noexcept;
  // Takes the completions that nobody took. A shared receive queue needs their slots back.
  void retire_rest() noexcept;
  // Frees as much as possible. Returns the first error, or 0.
  int close() noexcept;

 private:
  void acknowledge_rest() noexcept;
};

namespace dapple::rpma {

// entries: in the form of verbs. channel: a connection's shared channel, or null. Returns an RPMA_E_* or 0.
int make_cq(const rpma_peer& peer, int entries, ibv_comp_channel* channel, std::unique_ptr<rpma_cq>& out) noexcept;

// Called after the kernel refused to make a queue with this errno value: logs a line if the memlock limit may be the
// reason. Keeps errno.
void explain_queue(int error) noexcept;

}  // namespace dapple::rpma

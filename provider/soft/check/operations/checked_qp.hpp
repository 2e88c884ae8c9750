// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts that dapple-run --check adds to a queue pair.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "provider/soft/check/operations/checking_completions.hpp"
#include "provider/soft/check/operations/checking_events.hpp"
#include "provider/soft/check/operations/checking_memory.hpp"
#include "provider/soft/check/races/numbered_queue_pair.hpp"

namespace dapple::soft::check {

// These parts stand between the engine and the ports that it would have otherwise.
struct CheckedQp {
  CheckedQp(Checker& process, const Qp& qp, roce::Memory& memory_below, roce::CompletionSink& sent_below,
            roce::CompletionSink& received_below, roce::EventSink& events_below)
      : checker(process),
        sends(qp.init.cap.max_send_wr),
        memory(process, qp, sends, memory_below),
        sent(process, qp, *qp.send_cq, sent_below),
        received(process, qp, *qp.recv_cq, received_below),
        events(process, qp, events_below) {
    checker.add(sends);
  }
  ~CheckedQp() { checker.remove(sends); }
  CheckedQp(const CheckedQp&) = delete;
  CheckedQp& operator=(const CheckedQp&) = delete;

  // The engine, with a layer for --check=races.
  std::unique_ptr<roce::QueuePair> number(std::unique_ptr<roce::QueuePair> engine, const Qp& qp) {
    if (engine == nullptr || checker.races == nullptr) return engine;
    auto made = std::make_unique<NumberedQueuePair>(std::move(engine), *checker.races, qp);
    numbered = made.get();
    return made;
  }

  Checker& checker;
  PostedSends sends;
  CheckingMemory memory;
  CheckingCompletions sent, received;
  CheckingEvents events;
  NumberedQueuePair* numbered = nullptr;         // a layer of the engine; null without --check=races
  std::atomic<bool> has_rdma_cms_rights{false};  // librdmacm has set its qp_access_flags last
  int (*wr_complete)(ibv_qp_ex*) = nullptr;      // the one below, of an extended queue pair
};

}  // namespace dapple::soft::check

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The surroundings of the queue pairs' engines: where their packets go, their deadlines, their turns, and the events
// that they leave for the application. Threads use them by an EngineTurn (engine_turn.hpp).
#pragma once

#include <cassert>
#include <cstdint>

#include "provider/protocol/messages.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/placement/publication.hpp"
#include "provider/soft/scheduling/handover.hpp"
#include "provider/soft/scheduling/held_acknowledgements.hpp"
#include "provider/soft/scheduling/held_events.hpp"
#include "provider/soft/scheduling/ready.hpp"
#include "provider/soft/scheduling/timers.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/transport/ring_turn.hpp"
#include "provider/soft/wire/batch_pool.hpp"

namespace dapple::soft {

// Tells the program of a completion event, if the queue has a channel. Without the locks of queue pairs.
void tell_of_event(Cq& cq);

// The faults of a plan that come after a queue pair's turn.
class PlannedEvents {
 public:
  // The port that the context uses.
  virtual void take_port_down(Context& context) = 0;

 protected:
  ~PlannedEvents() = default;
};

// Internally locked.
class Engines {
 public:
  Engines(Wire& wire, Publication& publication, SlotCounters& counters, const Wakeup& wakeup)
      : batches_(wire), publication_(publication), counters_(counters), wakeup_(wakeup) {}
  // Set it before the first queue pair.
  void plan(PlannedEvents& planned) {
    assert(planned_ == nullptr);
    planned_ = &planned;
  }

  Handover handover;
  Timers timers;
  Ready ready;
  HeldAcknowledgements<Qp> held{handover};
  HeldEvents held_events;

  // Under the queue pair's lock: sends its packets as far as they go now. True if there is more to send.
  bool send_packets(Qp& qp, roce::Now now);
  // Under the queue pair's lock, after calls of its engine: takes over the engine's state, counters and deadline.
  // `more` is the result of send_packets().
  void take_state(Qp& qp, bool more);
  // The same, of the deadline alone.
  void take_deadline(Qp& qp, roce::Time deadline) {
    if (timers.schedule(qp, deadline)) handover.note_deadline(timers.earliest());
  }

  // Without locks: tells the application of completions and events, and wakes the background thread if that is due. The
  // queue pair must be pinned or the caller's own.
  void tell_program(Qp& qp);
  // The same of a shared receive queue of an XRC domain.
  void tell_of_xrc(Srq& srq);
  // The same of a completion queue with a notice.
  void tell_of_completions(Cq& cq);
  // Raises the events of completion queues whose time is over. Without locks.
  void raise_held_events(roce::Time now);
  void wake_if_due() {
    if (handover.take_wake()) wakeup_.wake();
  }

 private:
  bool send_to_ring(Qp& qp, roce::Now now);
  void count(Qp& qp);
  void count(Qp& qp, const RingTurn::Placements& placed);

  BatchPool batches_;
  Publication& publication_;
  SlotCounters& counters_;
  const Wakeup& wakeup_;
  PlannedEvents* planned_ = nullptr;
};

}  // namespace dapple::soft

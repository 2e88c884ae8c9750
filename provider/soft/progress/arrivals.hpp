// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Arriving packets: each goes to the queue pair of its number. The queue pairs that packets have changed are finished
// together, so that one acknowledgement serves many packets.
#pragma once

#include <cassert>
#include <cstdint>

#include "provider/protocol/messages.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/raw/frame_wire.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"
#include "provider/soft/transport/fetch_ahead.hpp"
#include "provider/soft/transport/multicast.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

// Guarded by the lock of receiving, which is `receiving`.
class Arrivals final : public ArrivalSink, public FrameTaker {
 public:
  Arrivals(const QpTable& qps, Multicast& multicast, Engines& engines, SlotCounters& counters,
           const BiasedMutex& receiving)
      : qps_(qps), multicast_(multicast), engines_(engines), counters_(counters), receiving_(receiving) {}

  // A pass begins; `clock` has the time of this pass.
  void begin_pass() {
    assert_held(receiving_);
    assert(touched_count_ == 0);
    clock_.restart();
  }
  TurnClock& clock() { return clock_; }

  // ArrivalSink.
  void arrived(const Arrival& arrival) override;
  void much_arrived() override { finish_all(); }
  // FrameTaker.
  void take_frame(Qp& qp, std::span<const std::byte> frame) override;
  // After the packets of a pass: acknowledges them, and tells the application.
  void finish_all() {
    assert_held(receiving_);
    if (touched_count_ > 0) finish_touched();
  }
  // Of peers, so far.
  uint64_t fetched_bytes() const { return fetched_bytes_; }

 private:
  static constexpr uint32_t kMaxTouched = 64;

  // A packet that needs nothing but its execution. False: arrived() goes on with it.
  bool take_plain(const Arrival& arrival);
  bool is_finished(Qp& qp);
  void count(const Qp& qp, const Arrival& arrival);
  void take(Qp& qp, const Arrival& arrival);
  void take_for_group(const Arrival& arrival);
  void lose(const Arrival& arrival);
  void take_other(roce::ParseError error, const Arrival& arrival);
  void take_reference(Qp& qp, const Arrival& arrival);
  void execute(Qp& qp, const Arrival& arrival);
  void touch(Qp& qp);
  void finish_touched();

  const QpTable& qps_;
  Multicast& multicast_;
  Engines& engines_;
  SlotCounters& counters_;
  const BiasedMutex& receiving_;

  TurnClock clock_;
  // The packet that has arrived. A local packet would be cleared for each arrival, although parse() sets all that its
  // opcode has.
  roce::Packet packet_;
  // The queue pairs that packets have changed since the last finish_all().
  Qp* touched_[kMaxTouched];
  uint32_t touched_count_ = 0;
  uint64_t fetched_bytes_ = 0;
  uint64_t count_ = 0;      // of packets
  AheadOfItsPacket ahead_;  // see FetchAhead
};

}  // namespace dapple::soft

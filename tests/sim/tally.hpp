// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Counts the packets of a reliable queue pair, and compares its counters with that. Some queue pairs also have an
// observer, which must be told of each request once.
#pragma once

#include <cstdint>
#include <optional>

#include "roce/core/queue_pair.hpp"
#include "roce/packet/packet.hpp"
#include "tests/sim/referee.hpp"
#include "tests/sim/stream.hpp"

namespace dapple::sim {

class Tally final : public roce::RequestObserver {
 public:
  Tally(Referee& referee, uint32_t qpn) : referee_(referee), qpn_(qpn) {}

  Stream* own = nullptr;    // the queue pair's requests
  Stream* peers = nullptr;  // those that it executes; null on UD

  // The queue pair is connected: its first packet has the PSN.
  void begin(uint32_t send_psn);
  // It commits a packet.
  void sent_packet(const roce::Packet& packet, uint32_t mtu);
  // A request packet is about to come to it, while it expects the PSN.
  void coming(uint32_t psn, uint32_t expected);
  // That packet came, and it expects another PSN if it has executed it. An error leaves nothing to count.
  void came(uint32_t psn, uint32_t expected, uint32_t expects_now, bool is_error);
  // It looked for a receive in vain, perhaps twice for one packet.
  void found_no_receive() { found_no_receive_ = true; }
  void expired() { expiries_++; }
  // A receive completes. An observer was told that before.
  void received_one(uint64_t bytes, roce::CompletionStatus status);

  void check(const roce::QpCounters& counters, bool may_hold_packets_back) const;

  void sent(roce::SendOpcode opcode, uint64_t bytes, roce::CompletionStatus status) override;
  void received(uint64_t bytes, roce::CompletionStatus status) override;
  void executed(bool is_read, uint64_t bytes, bool is_refused) override;

 private:
  struct Received {
    uint64_t bytes = 0;
    roce::CompletionStatus status{};
    bool operator==(const Received&) const = default;
  };

  Referee& referee_;
  const uint32_t qpn_;
  std::optional<Received> received_;

  uint32_t next_psn_ = 0;  // of its next new request
  bool found_no_receive_ = false;
  bool gap_ = false;  // it does not report one again until the packet that it expects comes
  uint64_t sequence_naks_ = 0, rnr_naks_ = 0, duplicates_ = 0, retransmitted_ = 0, expiries_ = 0;
  uint64_t sequence_naks_sent_ = 0, rnr_naks_sent_ = 0;
};

}  // namespace dapple::sim

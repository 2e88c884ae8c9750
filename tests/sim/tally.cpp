// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/tally.hpp"

#include <algorithm>
#include <cinttypes>

#include "roce/packet/psn.hpp"

namespace dapple::sim {

using roce::CompletionStatus;

namespace {

// IBTA 9.7.5.2: the upper bits of the syndrome.
constexpr uint8_t kKindMask = 0x60, kRnrNak = 0x20;
constexpr uint8_t kSequenceNak = 0x60;

}  // namespace

void Tally::begin(uint32_t send_psn) {
  next_psn_ = send_psn;
  gap_ = false;
  received_.reset();
}

void Tally::sent_packet(const roce::Packet& packet, uint32_t mtu) {
  if (packet.info->has(roce::kResponse)) {
    if (packet.info->operation != roce::Operation::kAcknowledge) return;
    const uint8_t syndrome = packet.headers.aeth.syndrome;
    if (syndrome == kSequenceNak) sequence_naks_sent_++;
    if ((syndrome & kKindMask) == kRnrNak) rnr_naks_sent_++;
    return;
  }
  if (roce::psn_before(packet.headers.psn, next_psn_)) {
    retransmitted_++;
    return;
  }
  // IBTA 9.7.3.1: a Read takes a PSN for each packet of its response.
  const bool is_read = packet.info->operation == roce::Operation::kReadRequest;
  const uint32_t packets = is_read ? std::max<uint32_t>((packet.headers.reth.length + mtu - 1) / mtu, 1) : 1;
  next_psn_ = roce::psn_add(packet.headers.psn, packets);
}

void Tally::coming(uint32_t psn, uint32_t expected) {
  if (psn == expected) gap_ = false;
  found_no_receive_ = false;
}

void Tally::came(uint32_t psn, uint32_t expected, uint32_t expects_now, bool is_error) {
  if (is_error) return;
  const int32_t place = roce::psn_distance(psn, expected);
  if (found_no_receive_) rnr_naks_++;
  if (place < 0) duplicates_++;
  if (place > 0 && !gap_) sequence_naks_++;
  // Also a packet that finds no receive, or memory that does not answer, must come again.
  if (place > 0 || (place == 0 && expects_now == expected)) gap_ = true;
}

void Tally::received_one(uint64_t bytes, CompletionStatus status) {
  if (received_ != Received{bytes, status})
    referee_.fail("QP %#x: a receive ends, and its observer does not know that", qpn_);
  received_.reset();
}

void Tally::check(const roce::QpCounters& counters, bool may_hold_packets_back) const {
  const auto compare = [this](const char* what, uint64_t counter, uint64_t least, uint64_t most) {
    if (counter < least || counter > most)
      referee_.fail("QP %#x: its counter of %s is %" PRIu64 " instead of %" PRIu64 " to %" PRIu64, qpn_, what, counter,
                    least, most);
  };
  compare("retransmitted packets", counters.retransmitted_packets, retransmitted_, retransmitted_);
  compare("duplicates", counters.duplicates, duplicates_, duplicates_);
  compare("sequence NAKs", counters.sequence_naks_sent, sequence_naks_, sequence_naks_);
  compare("RNR NAKs", counters.rnr_naks_sent, rnr_naks_, rnr_naks_);
  compare("timeouts", counters.timeouts, 0, expiries_);
  // The packet that was missing may come before its NAK has left.
  if (may_hold_packets_back ? sequence_naks_sent_ > sequence_naks_ : sequence_naks_sent_ != sequence_naks_)
    referee_.fail("QP %#x: it counts %" PRIu64 " sequence NAKs and sent %" PRIu64, qpn_, sequence_naks_,
                  sequence_naks_sent_);
  if (may_hold_packets_back ? rnr_naks_sent_ > rnr_naks_ : rnr_naks_sent_ != rnr_naks_)
    referee_.fail("QP %#x: it counts %" PRIu64 " RNR NAKs and sent %" PRIu64, qpn_, rnr_naks_, rnr_naks_sent_);
}

// --- What the observer is told

void Tally::sent(roce::SendOpcode opcode, uint64_t bytes, CompletionStatus status) {
  own->counted(opcode, bytes, status);
}

void Tally::received(uint64_t bytes, CompletionStatus status) {
  if (received_) referee_.fail("QP %#x: its observer is told of a receive that does not complete", qpn_);
  received_ = {bytes, status};
}

void Tally::executed(bool is_read, uint64_t bytes, bool is_refused) {
  if (is_refused ? bytes != 0 : peers == nullptr)
    referee_.fail("QP %#x: its observer is told of a request that nobody sent", qpn_);
  else if (!is_refused)
    peers->counted_by_peer(is_read, bytes);
}

}  // namespace dapple::sim

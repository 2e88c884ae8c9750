// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/peers_packets.hpp"

#include <string.h>

#include "roce/core/syndrome.hpp"
#include "roce/packet/psn.hpp"

namespace dapple::soft {

void PeersPackets::see(const roce::Packet& packet, const roce::QueuePair& queue_pair) {
  const roce::OpcodeInfo& info = *packet.info;
  // A datagram is not of the peer's queue pair: QP 1 answers the question of --check=races.
  if (info.transport == roce::Transport::kUd) return;
  any = true;
  // All but the last packet of a message are as long as the path MTU (IBTA 9.7.2.2).
  if (info.has(roce::kHasPayload) && !info.has(roce::kEnds)) path_mtu = static_cast<uint32_t>(packet.payload.size());
  if (answers || !info.has(roce::kResponse)) return;
  const bool is_acknowledgement = info.operation == roce::Operation::kAcknowledge;
  // An acknowledgement has the PSN of the last packet that is taken, and a NAK that of the next one (IBTA 9.7.5).
  const bool is_good =
      is_acknowledgement && roce::syndrome_kind(packet.headers.aeth.syndrome) == roce::SyndromeKind::kAck;
  const uint32_t psn = is_good ? roce::psn_add(packet.headers.psn, 1) : packet.headers.psn;
  answers = roce::psn_distance(psn, first_psn) >= (is_good ? 1 : 0) &&
            roce::psn_distance(queue_pair.attributes().send_psn, psn) >= 0;
  if (answers) {
    expected_psn.reset();
  } else if (is_acknowledgement) {
    expected_psn = psn;
  }
}

void PeersPackets::see_from(const uint8_t* source) {
  memcpy(stranger.emplace().data(), source, stranger->size());
}

}  // namespace dapple::soft

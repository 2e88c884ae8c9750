// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packets: the request of each, and its acknowledgement.
#include <fmt/format.h>

#include <algorithm>

#include "tools/picture/queues.hpp"

namespace dapple::picture {
namespace {

// IBTA 9.7.1: numbers of 24 bits; half of them are after the other one.
bool is_after(uint32_t psn, uint32_t other) {
  constexpr uint32_t kHalf = 1 << 23;
  return psn != other && ((psn - other) & roce::kMask24) < kHalf;
}

bool is_response(const roce::OpcodeInfo& info) {
  return info.has(roce::kResponse) || info.operation == roce::Operation::kAcknowledge;
}

// The peer takes a receive for these messages.
bool takes_receive(const roce::OpcodeInfo& info) {
  using roce::Operation;
  if (!info.has(roce::kEnds) || is_response(info)) return false;
  return info.has(roce::kHasImmediate) || info.operation <= Operation::kSendOnlyImmediate ||
         info.operation == Operation::kSendLastInvalidate || info.operation == Operation::kSendOnlyInvalidate;
}

}  // namespace

uint32_t Queues::source_of(const CapturedPacket& packet) const {
  if (packet.info->has(roce::kHasDeth)) return packet.headers.deth.source_qpn;
  const uint32_t destination = packet.headers.destination_qpn;
  if (const auto found = sources_.find(destination); found != sources_.end()) return found->second;
  const auto found = queue_pairs_.find(destination);
  return found == queue_pairs_.end() ? 0 : found->second.peer;
}

size_t Queues::add_packet(const CapturedPacket& packet, uint32_t source) {
  const roce::Headers& headers = packet.headers;
  const bool acknowledges = is_response(*packet.info);
  const std::string refusal = refusal_of(packet);
  const std::string lane =
      fmt::format("{} to {}, QP {:#x}", packet.source, packet.destination, headers.destination_qpn);
  const size_t index = stage_.add(acknowledges ? Kind::kAcknowledgement : Kind::kPacket, stage_.lane(0, lane),
                                  packet.time_ns, refusal.empty() ? name_of(*packet.info) : refusal);
  Item& item = stage_.item(index);
  item.qpn = source;
  item.to_qpn = headers.destination_qpn;
  item.bad = !refusal.empty();
  item.details = {{"psn", headers.psn}, {"bytes", packet.payload_size}};
  if (source != 0) item.details["from"] = hex_text(source);
  item.details["to"] = hex_text(headers.destination_qpn);
  if (packet.info->has(roce::kHasReth)) {
    item.details["remote_address"] = hex_text(headers.reth.address);
    item.details["rkey"] = hex_text(headers.reth.rkey);
    item.details["length"] = headers.reth.length;
  }
  return index;
}

void Queues::begin_message(const CapturedPacket& packet, QueuePair& source, size_t item) {
  const auto next = std::find_if(source.sends.begin(), source.sends.end(), [](const Request& request) {
    return request.has_packets && request.first_packet == kNone;
  });
  if (next == source.sends.end()) return;
  const bool has_address = packet.info->has(roce::kHasReth) && next->remote_address != 0;
  if (has_address && packet.headers.reth.address != next->remote_address) return;
  next->first_packet = item;
  next->first_psn = next->last_psn = packet.headers.psn;
  stage_.arrow(next->post, item);
}

// This packet does what was expected of the lost one.
void Queues::send_again(const CapturedPacket& packet, QueuePair& source, size_t item) {
  const auto replace = [&](size_t& other) {
    if (other != kNone && !stage_.item(other).both && stage_.item(other).details["psn"] == packet.headers.psn)
      other = item;
  };
  stage_.item(item).bad = true;
  stage_.item(item).name += " again";
  for (Request& request : source.sends) replace(request.last_packet);
  for (size_t& arrival : queue_pairs_[packet.headers.destination_qpn].arrivals) replace(arrival);
}

void Queues::send_request(const CapturedPacket& packet, QueuePair& source, size_t item) {
  const uint32_t psn = packet.headers.psn;
  const bool reliable = packet.info->transport == roce::Transport::kRc;
  if (reliable && source.next_psn.has_value() && is_after(*source.next_psn, psn)) {
    send_again(packet, source, item);
    return;
  }
  source.next_psn = (psn + 1) & roce::kMask24;
  if (packet.info->has(roce::kStarts)) begin_message(packet, source, item);
  for (auto request = source.sends.rbegin(); request != source.sends.rend(); ++request) {
    if (request->first_packet == kNone) continue;
    request->last_psn = psn;
    request->last_packet = item;
    // A datagram has no acknowledgement: its packet completes the request.
    if (!reliable) request->acknowledgement = item;
    break;
  }
  if (takes_receive(*packet.info)) queue_pairs_[packet.headers.destination_qpn].arrivals.push_back(item);
}

void Queues::answer(const CapturedPacket& packet, QueuePair& requester, size_t item) {
  const uint32_t psn = packet.headers.psn;
  const bool retried = refusal_of(packet) == "RNR NAK" || refusal_of(packet) == "NAK: sequence error";
  const bool ends = packet.info->has(roce::kEnds) && packet.info->operation != roce::Operation::kAcknowledge;
  for (Request& request : requester.sends) {
    if (request.first_packet == kNone) {
      if (request.has_packets) break;
      continue;
    }
    if (request.acknowledgement != kNone) continue;
    if (is_after(request.first_psn, psn)) break;
    if (!request.is_read && is_after(request.last_psn, psn)) break;
    if (request.is_read && !ends && !stage_.item(item).bad) break;
    if (retried) continue;
    request.acknowledgement = item;
    stage_.arrow(request.last_packet == kNone ? request.first_packet : request.last_packet, item);
  }
}

// True if the packet was seen at its other end before. The receiver may note it before the sender does.
bool Queues::join_ends(const CapturedPacket& packet) {
  constexpr int64_t kLatestNoteNs = 1'000'000;
  std::map<std::string, size_t>& others = packet.is_sent ? received_ : sent_;
  const auto other = others.find(packet.bytes);
  if (other == others.end()) return false;
  Item& item = stage_.item(other->second);
  others.erase(other);
  if (packet.is_sent && packet.time_ns > item.end_ns + kLatestNoteNs) return false;
  item.end_ns = std::max(item.begin_ns, packet.time_ns);
  item.both = true;
  return true;
}

void Queues::tell(const CapturedPacket& packet) {
  if (packet.info == nullptr) return;
  const uint32_t source = source_of(packet);
  const uint32_t destination = packet.headers.destination_qpn;
  if (join_ends(packet)) return;
  const size_t item = add_packet(packet, source);
  constexpr uint32_t kLastSpecial = 1;  // of connection management
  const auto here = queue_pairs_.find(destination);
  const auto there = queue_pairs_.find(source);
  const bool both = here != queue_pairs_.end() && here->second.process != 0 && there != queue_pairs_.end() &&
                    there->second.process != 0;
  if (both) (packet.is_sent ? sent_ : received_)[packet.bytes] = item;
  if (destination <= kLastSpecial) return;
  if (is_response(*packet.info)) {
    if (here != queue_pairs_.end()) answer(packet, here->second, item);
    return;
  }
  if (source == 0) return;
  stage_.connect(source, there == queue_pairs_.end() ? 0 : there->second.process, destination,
                 here == queue_pairs_.end() ? 0 : here->second.process);
  send_request(packet, queue_pairs_[source], item);
}

}  // namespace dapple::picture

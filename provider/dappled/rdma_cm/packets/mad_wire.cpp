// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/mad_wire.hpp"

#include <errno.h>
#include <string.h>

#include <new>
#include <optional>

#include "provider/network/gid.hpp"
#include "provider/protocol/mark_question.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint8_t kSendOnly = roce::opcode_of(roce::Transport::kUd, roce::Operation::kSendOnly);
constexpr uint16_t kDefaultPkey = 0xFFFF;
constexpr uint16_t kPkeyBits = 0x7FFF;
constexpr uint8_t kHopLimit = 64;

}  // namespace

std::unique_ptr<MadWire> MadWire::open(int socket, bool dual_stack, soft::SlotCounters* counters, soft::PacketTap& tap,
                                       soft::Problem& problem) {
  std::unique_ptr<MadWire> made(new (std::nothrow) MadWire);
  soft::Slot slot;
  slot.receive_socket = socket;
  slot.dual_stack = dual_stack;
  slot.counters = counters;
  if (made != nullptr) made->wire_ = soft::UdpWire::open(slot, problem, soft::UdpWire::Environment::kIgnored);
  if (made == nullptr || made->wire_ == nullptr) return nullptr;
  made->wire_->set_tap(tap);
  made->batch_.reset(made->wire_->make_batch());
  if (made->batch_ != nullptr) return made;
  problem.set(ENOMEM, "no memory for packets of connection management");
  return nullptr;
}

void MadWire::receive(Sink& sink) {
  sink_ = &sink;
  wire_->receive(*this);
}

void MadWire::arrived(const soft::Arrival& arrival) {
  roce::Packet packet;
  const bool good = roce::parse(arrival.transport, packet) == roce::ParseError::kNone;
  const roce::Headers& headers = packet.headers;
  if (!good || headers.opcode != kSendOnly || headers.destination_qpn != roce::cm::kGsiQpn ||
      headers.deth.qkey != roce::cm::kGsiQkey || (headers.pkey & kPkeyBits) != kPkeyBits ||
      soft::is_multicast(arrival.destination)) {
    rejected_++;
    return;
  }
  if (headers.deth.source_qpn != roce::cm::kGsiQpn) {
    if (!answer(arrival, packet)) rejected_++;
    return;
  }
  Gid local, remote;
  memcpy(local.data(), arrival.destination, local.size());
  memcpy(remote.data(), arrival.source, remote.size());
  sink_->arrived(local, remote, arrival.netdev_index, packet.payload);
}

// False if it is no question that this host answers. An answer is as long as its question, and goes to the address that
// the question came from.
bool MadWire::answer(const soft::Arrival& arrival, const roce::Packet& packet) {
  const std::optional<soft::MarkQuestion> question = soft::read_mark_question(packet.payload);
  if (!question || question->version != soft::kMarkVersion || host_ == 0) return false;
  soft::Path path;
  memcpy(path.source, arrival.destination, sizeof path.source);
  memcpy(path.destination, arrival.source, sizeof path.destination);
  path.netdev_index = arrival.netdev_index;
  const soft::MarkMad mad = soft::make_mark_answer({.transaction = question->transaction, .host = host_});
  send(path, packet.headers.deth.source_qpn, mad);
  return true;
}

void MadWire::send(const roce::cm::Path& path, uint32_t netdev_index, const roce::cm::Mad& mad) {
  soft::Path packets;
  memcpy(packets.source, path.local.data(), path.local.size());
  memcpy(packets.destination, path.remote.data(), path.remote.size());
  packets.netdev_index = netdev_index;
  packets.traffic_class = path.traffic_class;
  send(packets, roce::cm::kGsiQpn, mad);
}

void MadWire::send(soft::Path& path, uint32_t qpn, std::span<const std::byte> mad) {
  path.hop_limit = kHopLimit;
  path.source_qpn = roce::cm::kGsiQpn;
  path.destination_qpn = qpn;
  batch_->set_path(path);
  roce::Headers headers;
  headers.opcode = kSendOnly;
  headers.pkey = kDefaultPkey;
  headers.destination_qpn = qpn;
  headers.psn = psn_++ & 0xFFFFFF;
  headers.deth = {.qkey = roce::cm::kGsiQkey, .source_qpn = roce::cm::kGsiQpn};
  std::byte front[roce::kMaxHeaderSize];
  const size_t size = roce::write_headers(headers, front);
  std::byte* packet = batch_->reserve(size + mad.size());
  if (packet == nullptr) return;
  memcpy(packet, front, size);
  memcpy(packet + size, mad.data(), mad.size());
  batch_->commit(nullptr);
  batch_->flush();
}

}  // namespace dapple::dappled::rdma_cm

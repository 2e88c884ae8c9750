// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/core/data_packet.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>

#include "roce/packet/psn.hpp"

namespace dapple::roce {
namespace {

// A packet's place in its message: the first, the last, both, or neither.
constexpr size_t kFirst = 1;
constexpr size_t kLast = 2;
constexpr size_t kPlaces = 4;

using O = Operation;
// By SendOpcode and place.
constexpr Operation kOperations[][kPlaces] = {
    {O::kWriteMiddle, O::kWriteFirst, O::kWriteLast, O::kWriteOnly},
    {O::kWriteMiddle, O::kWriteFirst, O::kWriteLastImmediate, O::kWriteOnlyImmediate},
    {O::kSendMiddle, O::kSendFirst, O::kSendLast, O::kSendOnly},
    {O::kSendMiddle, O::kSendFirst, O::kSendLastImmediate, O::kSendOnlyImmediate},
};
constexpr Operation kSendInvalidate[kPlaces] = {O::kSendMiddle, O::kSendFirst, O::kSendLastInvalidate,
                                                O::kSendOnlyInvalidate};

Operation operation_of(SendOpcode opcode, size_t place) {
  if (opcode == SendOpcode::kSendInvalidate) return kSendInvalidate[place];
  assert(static_cast<size_t>(opcode) < std::size(kOperations));
  return kOperations[static_cast<size_t>(opcode)][place];
}

size_t place_of(const SendEntry& entry, const DataPacket& packet) {
  return (packet.number == 0 ? kFirst : 0) | (packet.number + packet.count == entry.packets ? kLast : 0);
}

const OpcodeInfo& info_of(const SendEntry& entry, const DataPacket& packet, size_t place) {
  return opcode_info(opcode_of(packet.transport, operation_of(entry.opcode, place)));
}

void write_extended(const OpcodeInfo& info, const SendEntry& entry, const Deth& deth, std::byte* to) {
  // Most Writes have this header alone, and then the others are not made.
  if (info.has(kHasReth) && info.extended_size == kRethSize)
    return write_reth({entry.remote().address, entry.remote().rkey, entry.length}, to);
  Headers headers;
  headers.deth = deth;
  headers.immediate = entry.immediate_or_rkey();
  headers.invalidated_rkey = entry.immediate_or_rkey();
  if (entry.part() == SendEntry::Part::kRemote) {
    const SendEntry::Remote& remote = entry.remote();
    headers.reth = {remote.address, remote.rkey, entry.length};
    headers.xrc_srq = remote.srq;
  }
  roce::write_extended(info, headers, to);
}

void write_headers(const SendEntry& entry, const DataPacket& packet, const OpcodeInfo& info, uint8_t pad,
                   std::byte* to) {
  Bth bth;
  bth.opcode = opcode_of(info.transport, info.operation);
  bth.solicited = info.has(kEnds) && (entry.flags & kSolicited) != 0;
  bth.pad = pad;
  bth.destination_qpn = packet.destination_qpn;
  bth.ack_request = packet.ack_request;
  bth.psn = psn_add(entry.first_psn, packet.number);
  write_bth(bth, to);
  if (info.extended_size != 0) write_extended(info, entry, packet.deth, to + kBthSize);
}

}  // namespace

Emitted emit_data(Core& core, const SendEntry& entry, const DataPacket& packet, PacketSink& sink) {
  const uint64_t offset = uint64_t{packet.number} * core.mtu();
  assert(packet.count == 1 && packet.number < entry.packets && offset <= entry.length);
  const size_t size = std::min<uint64_t>(core.mtu(), entry.length - offset);
  const OpcodeInfo& info = info_of(entry, packet, place_of(entry, packet));
  const size_t before = kBthSize + info.extended_size;
  const uint8_t pad = pad_of(size);
  std::byte* room = sink.reserve(before + size + pad);
  if (room == nullptr) return Emitted::kFull;
  write_headers(entry, packet, info, pad, room);
  write_pad(pad, room + before + size);
  if (size > 0) {
    if (entry.is_inline()) {
      memcpy(room + before, core.sends.inline_bytes(entry) + offset, size);
    } else if (core.memory.gather(core.self(), core.sends.segments(entry), offset, room + before, size) !=
               Fault::kNone) {
      return Emitted::kFault;
    }
  }
  sink.commit(packet.to);
  return Emitted::kSent;
}

bool emit_reference(Core& core, const SendEntry& entry, const DataPacket& packet, PacketSink& sink) {
  const uint64_t offset = uint64_t{packet.number} * core.mtu();
  assert(packet.count > 1 && packet.number + packet.count <= entry.packets && offset < entry.length);
  // The peer cannot reach a copy in the send queue.
  assert(!entry.is_inline());
  const Reference reference = {core.self(), core.sends.segments(entry), offset,
                               std::min<uint64_t>(entry.length - offset, uint64_t{packet.count} * core.mtu()),
                               packet.count};
  const OpcodeInfo& info = info_of(entry, packet, place_of(entry, packet));
  std::byte* room = sink.refer(reference, kBthSize + info.extended_size);
  if (room == nullptr) return false;
  write_headers(entry, packet, info, 0, room);
  sink.commit(nullptr);
  return true;
}

}  // namespace dapple::roce

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/data_packet.hpp"

#include <algorithm>
#include <cstring>

#include "roce/psn.hpp"

namespace dapple::roce {
namespace {

struct Operations {
  Operation first, middle, last, only;
};

Operations operations_of(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::kSendImmediate:
      return {Operation::kSendFirst, Operation::kSendMiddle, Operation::kSendLastImmediate,
              Operation::kSendOnlyImmediate};
    case SendOpcode::kSendInvalidate:
      return {Operation::kSendFirst, Operation::kSendMiddle, Operation::kSendLastInvalidate,
              Operation::kSendOnlyInvalidate};
    case SendOpcode::kWrite:
      return {Operation::kWriteFirst, Operation::kWriteMiddle, Operation::kWriteLast, Operation::kWriteOnly};
    case SendOpcode::kWriteImmediate:
      return {Operation::kWriteFirst, Operation::kWriteMiddle, Operation::kWriteLastImmediate,
              Operation::kWriteOnlyImmediate};
    default:
      return {Operation::kSendFirst, Operation::kSendMiddle, Operation::kSendLast, Operation::kSendOnly};
  }
}

}  // namespace

Headers data_headers(const SendEntry& entry, Transport transport, uint32_t packet, uint32_t mtu, uint32_t count) {
  const Operations operations = operations_of(entry.request.opcode);
  const bool is_first = packet == 0;
  const bool is_last = packet + count == entry.packets;
  Headers headers;
  headers.opcode = opcode_of(transport, is_first ? (is_last ? operations.only : operations.first)
                                                 : (is_last ? operations.last : operations.middle));
  headers.psn = psn_add(entry.first_psn, packet);
  headers.solicited = is_last && (entry.request.flags & kSolicited) != 0;
  headers.pad = pad_of(std::min<uint64_t>(mtu, entry.length - uint64_t{packet} * mtu));
  headers.reth = {entry.request.remote_address, entry.request.rkey, static_cast<uint32_t>(entry.length)};
  headers.immediate = entry.request.immediate_or_rkey;
  headers.invalidated_rkey = entry.request.immediate_or_rkey;
  return headers;
}

Emitted emit_data(Core& core, const SendEntry& entry, const Headers& headers, uint32_t packet, PacketSink& sink,
                  const AddressVector* to) {
  const uint64_t offset = uint64_t{packet} * core.mtu();
  const size_t size = std::min<uint64_t>(core.mtu(), entry.length - offset);
  const OpcodeInfo& info = opcode_info(headers.opcode);
  const size_t before = kBthSize + info.extended_size;
  std::byte* room = sink.reserve(before + size + headers.pad);
  if (room == nullptr) return Emitted::kFull;
  write_headers(headers, {room, before});
  write_pad(headers.pad, room + before + size);
  if (size > 0) {
    if (entry.inline_bytes != nullptr) {
      memcpy(room + before, entry.inline_bytes + offset, size);
    } else if (core.memory.gather(core.self(), entry.request.segments, offset, room + before, size) != Fault::kNone) {
      return Emitted::kFault;
    }
  }
  sink.commit(to);
  return Emitted::kSent;
}

}  // namespace dapple::roce

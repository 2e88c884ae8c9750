// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/reliable/request_packet.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>

#include "roce/packet/psn.hpp"

namespace dapple::roce {
namespace {

Operation operation_of(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::kCompareSwap:
      return Operation::kCompareSwap;
    case SendOpcode::kFetchAdd:
      return Operation::kFetchAdd;
    case SendOpcode::kFlush:
      return Operation::kFlush;
    case SendOpcode::kAtomicWrite:
      return Operation::kAtomicWrite;
    default:
      assert(opcode == SendOpcode::kRead);
      return Operation::kReadRequest;
  }
}

// The remote bytes that the packets [first, end) of the response carry.
Reth part_of(const SendEntry& entry, uint32_t first, uint32_t end, uint32_t mtu) {
  const SendEntry::Remote& remote = entry.remote();
  const uint64_t offset = uint64_t{first} * mtu;
  const uint64_t length = std::min<uint64_t>(entry.length, uint64_t{end} * mtu) - offset;
  return {remote.address + offset, remote.rkey, static_cast<uint32_t>(length)};
}

Headers headers_of(const Core& core, const SendEntry& entry, uint32_t first, uint32_t end) {
  const SendEntry::Remote& remote = entry.remote();
  Headers headers;
  headers.destination_qpn = core.values.destination_qpn;
  headers.psn = psn_add(entry.first_psn, first);
  headers.ack_request = true;
  headers.xrc_srq = remote.srq;
  headers.opcode = opcode_of(core.transport, operation_of(entry.opcode));
  headers.reth = {remote.address, remote.rkey, entry.length};
  switch (entry.opcode) {
    case SendOpcode::kCompareSwap:
      headers.atomic = {remote.address, remote.rkey, remote.swap, remote.operand};
      break;
    case SendOpcode::kFetchAdd:
      headers.atomic = {remote.address, remote.rkey, remote.operand, 0};
      break;
    case SendOpcode::kFlush:
      headers.flush = static_cast<uint32_t>(remote.operand);
      break;
    case SendOpcode::kRead:
      headers.reth = part_of(entry, first, end, core.mtu());
      headers.continues = end < entry.packets;
      break;
    default:
      break;
  }
  return headers;
}

}  // namespace

bool emit_request(const Core& core, const SendEntry& entry, uint32_t first, uint32_t end, PacketSink& sink) {
  assert(first < end && end <= entry.packets);
  const Headers headers = headers_of(core, entry, first, end);
  const size_t before = kBthSize + opcode_info(headers.opcode).extended_size;
  const uint64_t value = entry.remote().operand;
  const size_t size = entry.opcode == SendOpcode::kAtomicWrite ? sizeof value : 0;
  std::byte* room = sink.reserve(before + size);
  if (room == nullptr) return false;
  write_headers(headers, {room, before});
  if (size > 0) memcpy(room + before, &value, size);
  sink.commit(nullptr);
  return true;
}

CompletionStatus take_response(const Core& core, const SendEntry& entry, const Packet& packet) {
  const Operation operation = packet.info->operation;
  uint64_t offset = 0;
  uint64_t original = packet.headers.atomic_original;
  std::span<const std::byte> bytes = packet.payload;
  switch (entry.opcode) {
    case SendOpcode::kRead:
      if (operation == Operation::kAtomicAcknowledge) return CompletionStatus::kBadResponse;
      offset = uint64_t{entry.received()} * core.mtu();
      if (bytes.size() != std::min<uint64_t>(core.mtu(), entry.length - offset)) return CompletionStatus::kBadResponse;
      break;
    case SendOpcode::kCompareSwap:
    case SendOpcode::kFetchAdd:
      if (operation != Operation::kAtomicAcknowledge) return CompletionStatus::kBadResponse;
      bytes = std::as_bytes(std::span(&original, 1));
      break;
    default:
      if (operation != Operation::kReadResponseOnly || !bytes.empty()) return CompletionStatus::kBadResponse;
      return CompletionStatus::kSuccess;
  }
  if (bytes.empty()) return CompletionStatus::kSuccess;
  const Fault fault = core.memory.scatter(core.self(), core.sends.segments(entry), offset, bytes.data(), bytes.size());
  return fault == Fault::kNone ? CompletionStatus::kSuccess : CompletionStatus::kLocalProtection;
}

}  // namespace dapple::roce

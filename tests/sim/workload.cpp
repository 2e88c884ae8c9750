// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/workload.hpp"

#include <algorithm>
#include <cassert>
#include <cinttypes>

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpType;
using roce::SendOpcode;

namespace {

constexpr uint32_t kMaxMessage = 12 * 1024;

constexpr SendOpcode kReliable[] = {SendOpcode::kWrite,          SendOpcode::kWrite,      SendOpcode::kWriteImmediate,
                                    SendOpcode::kSend,           SendOpcode::kSend,       SendOpcode::kSendImmediate,
                                    SendOpcode::kRead,           SendOpcode::kRead,       SendOpcode::kCompareSwap,
                                    SendOpcode::kFetchAdd,       SendOpcode::kFlush,      SendOpcode::kAtomicWrite,
                                    SendOpcode::kSendInvalidate, SendOpcode::kBindWindow, SendOpcode::kLocalInvalidate};
// IBTA A14 has neither Flush nor Atomic Write.
constexpr SendOpcode kExtended[] = {SendOpcode::kWrite,       SendOpcode::kWriteImmediate, SendOpcode::kSend,
                                    SendOpcode::kSend,        SendOpcode::kSendImmediate,  SendOpcode::kRead,
                                    SendOpcode::kCompareSwap, SendOpcode::kFetchAdd,       SendOpcode::kSendInvalidate,
                                    SendOpcode::kBindWindow,  SendOpcode::kLocalInvalidate};
constexpr SendOpcode kUnreliable[] = {SendOpcode::kWrite, SendOpcode::kWriteImmediate, SendOpcode::kSend,
                                      SendOpcode::kSendImmediate};
constexpr SendOpcode kDatagram[] = {SendOpcode::kSend, SendOpcode::kSendImmediate};

}  // namespace

void Workload::choose_opcode(Party& party, Operation& operation) {
  SendOpcode& opcode = operation.request.opcode;
  switch (party.config().type) {
    case QpType::kRc:
      opcode = random_.one_of(kReliable);
      break;
    case QpType::kUc:
      opcode = random_.one_of(kUnreliable);
      break;
    case QpType::kUd:
      opcode = random_.one_of(kDatagram);
      break;
    case QpType::kXrcSend:
      opcode = random_.one_of(kExtended);
      break;
    case QpType::kRawPacket:
    case QpType::kXrcReceive:
      assert(!"the simulator makes no such queue pairs");
      break;
  }
  if (opcode == SendOpcode::kSendInvalidate && party.peer->target.window == 0) opcode = SendOpcode::kSend;
  if (opcode == SendOpcode::kBindWindow && (party.target.window_is_bound || party.target.window_slot == 0))
    opcode = SendOpcode::kWrite;
  // The peer may use the window at that time; then its access fails.
  if (opcode == SendOpcode::kLocalInvalidate && (party.target.window == 0 || plan_.mood != Mood::kWild))
    opcode = SendOpcode::kSend;
}

uint32_t Workload::random_length(const Party& party, uint32_t most) {
  const uint32_t mtu = party.attributes.path_mtu;
  uint32_t length = 0;
  switch (random_.below(5)) {
    case 0:
      length = static_cast<uint32_t>(random_.below(65));
      break;
    case 1:
      length = mtu * static_cast<uint32_t>(random_.between(1, 3)) + static_cast<uint32_t>(random_.below(3)) - 1;
      break;
    case 2:
      length = static_cast<uint32_t>(random_.below(mtu * 3));
      break;
    case 3:
      length = static_cast<uint32_t>(random_.below(1024));
      break;
    default:
      length = static_cast<uint32_t>(random_.below(kMaxMessage));
      break;
  }
  return std::min(length, most);
}

const XrcQueue* Workload::choose_queue(Party& party, Operation& operation) {
  XrcDomain& domain = *party.peer->domain;
  uint32_t& number = operation.request.remote_srq;
  XrcQueue& chosen = random_.one_of(domain.queues());
  number = chosen.number;
  // The window of the peer has this protection domain.
  if (operation.opcode() == SendOpcode::kSendInvalidate && chosen.domain != kDomain)
    operation.request.opcode = SendOpcode::kSend;
  if (!random_.in_thousand(plan_.wrong_queues)) return domain.find(number);
  // A queue of another domain, if there is one, or of none.
  number = random_.in_thousand(500) ? number ^ 0x300 : static_cast<uint32_t>(random_.below(1 << 24));
  return domain.find(number);
}

uint32_t Workload::remote_key(Party& party, const Operation& operation) {
  const Target& target = party.peer->target;
  if (party.config().type == QpType::kXrcSend) {
    const XrcQueue* queue = party.peer->domain->find(operation.request.remote_srq);
    if (queue != nullptr && queue->domain == kOtherDomain) return target.other_key;
  }
  if (plan_.revocations > 0 && random_.in_thousand(300)) return target.revocable_key;
  return target.key;
}

// Sends and Writes.
void Workload::fill_data(Party& party, Operation& operation) {
  roce::SendRequest& request = operation.request;
  request.immediate_or_rkey = static_cast<uint32_t>(random_.next());
  operation.length = random_length(party, operation.is_write() ? Target::kWriteSize : kMaxMessage);
  if (operation.is_write()) {
    const Target& target = party.peer->target;
    request.remote_address = target.address + random_.below(Target::kWriteSize - operation.length + 1);
    request.rkey = remote_key(party, operation);
    // The window covers the first half of the writable memory.
    if (target.window != 0 && request.rkey != target.other_key && operation.length <= Target::kWriteSize / 2 &&
        random_.in_thousand(500)) {
      request.remote_address = target.address + random_.below(Target::kWriteSize / 2 - operation.length + 1);
      request.rkey = target.window;
    }
  }
  if (operation.opcode() == SendOpcode::kSendInvalidate) {
    Target& target = party.peer->target;
    request.immediate_or_rkey = target.window;
    target.window = 0;
    // A key that cannot be invalidated gets no NAK (IBTA 9.9.6.3, class J).
    if (plan_.mood == Mood::kWild) operation.excuses |= status_bit(CompletionStatus::kRetryExceeded);
  }
}

// Reads, atomics, Flush and Atomic Write.
void Workload::fill_response(Party& party, Operation& operation) {
  roce::SendRequest& request = operation.request;
  const Target& target = party.peer->target;
  request.rkey = remote_key(party, operation);
  if (operation.opcode() == SendOpcode::kRead) {
    operation.length = random_length(party, Target::kReadSize);
    // Reads may also overlap the written memory.
    request.remote_address =
        target.address + random_.below(Target::kWriteSize + Target::kReadSize - operation.length + 1);
    return;
  }
  if (operation.opcode() == SendOpcode::kFlush) {
    request.flush_length = static_cast<uint32_t>(random_.between(1, Target::kWriteSize));
    request.remote_address = target.address + random_.below(Target::kWriteSize - request.flush_length + 1);
    request.flush_type = static_cast<uint32_t>(random_.between(1, 3) | random_.below(2) << 4);
    return;
  }
  request.remote_address = target.address + Target::kSize - 8 * random_.between(1, Target::kAtomics);
  operation.length = operation.opcode() == SendOpcode::kAtomicWrite ? 0 : 8;
  request.atomic_write = random_.next();
  request.compare_or_add = random_.next();
  request.swap = random_.next();
}

void Workload::fill_window(Party& party, Operation& operation) {
  Target& target = party.target;
  operation.is_signaled = true;
  if (operation.opcode() == SendOpcode::kLocalInvalidate) {
    operation.request.immediate_or_rkey = target.window;
    operation.excuses |= status_bit(CompletionStatus::kLocalQpOperation);
    target.window = 0;
    return;
  }
  const uint32_t old = target.window_slot;
  roce::WindowBind& bind = operation.request.bind;
  bind.window_rkey = old;
  bind.new_rkey = (old & ~0xFFU) | ((old + 1) & 0xFF);
  bind.region_lkey = party.node().local_key;
  bind.address = target.address;
  bind.length = Target::kWriteSize / 2;
  bind.access = roce::kRemoteWrite;
  // The old key must not be bound again: Party sets the new one when this request has succeeded.
  target.window_slot = 0;
}

void Workload::fill_datagram(Party& party, Operation& operation) {
  roce::SendRequest& request = operation.request;
  operation.length = random_length(party, party.config().datagram_mtu);
  request.immediate_or_rkey = static_cast<uint32_t>(random_.next());
  std::vector<Party*> receivers;
  for (const auto& each : *party.parties)
    if (each->config().type == QpType::kUd) receivers.push_back(each.get());
  Party& receiver = *random_.one_of(receivers);
  request.remote_qpn = receiver.config().qpn;
  request.remote_qkey = receiver.attributes.qkey;
  request.address.destination_gid[15] = static_cast<uint8_t>(receiver.node().number);
  if (random_.in_thousand(100)) {
    request.remote_qkey ^= 1U << random_.below(31);
    operation.is_unreachable = true;
  }
}

// Makes the request wrong, so that it can fail in only one way.
void Workload::spoil(Party& party, Operation& operation) {
  roce::SendRequest& request = operation.request;
  const bool is_reliable = roce::is_reliable(party.config().type);
  const bool has_remote =
      is_reliable && !operation.is_send() && !operation.is_local() && (operation.length > 0 || operation.is_atomic());
  if (has_remote && operation.opcode() != SendOpcode::kFlush) {
    const Target& target = party.peer->target;
    operation.must_fail = true;
    operation.excuses = status_bit(CompletionStatus::kRemoteAccess);
    switch (random_.below(operation.is_atomic() ? 5 : 4)) {
      case 0:
        request.rkey ^= 0x5A;
        return;
      case 1:
        request.rkey = target.foreign_key;
        return;
      case 2:
        if (operation.opcode() == SendOpcode::kRead)
          request.rkey ^= 0x100000;
        else
          request.rkey = target.read_only_key;
        return;
      case 3:
        request.remote_address = (target.address + Target::kSize) & ~uint64_t{7};
        return;
      default:
        request.remote_address += 4;
        operation.excuses = status_bit(CompletionStatus::kRemoteInvalidRequest);
        return;
    }
  }
  if (operation.segments.empty() || operation.length == 0 || (request.flags & roce::kInline)) return;
  for (roce::Segment& segment : operation.segments) segment.lkey ^= 0x400000;
  operation.must_fail = true;
  operation.excuses = status_bit(CompletionStatus::kLocalProtection);
}

bool Workload::lay_out(Party& party, Operation& operation) {
  roce::SendRequest& request = operation.request;
  if (operation.length == 0) return true;
  Node& node = party.node();
  const uint32_t key = plan_.revocations > 0 && random_.in_thousand(100) ? node.revocable_local_key : node.local_key;
  const bool is_inline =
      operation.has_source() && operation.length <= party.config().max_inline && random_.in_thousand(400);
  if (is_inline) {
    request.flags |= roce::kInline;
    inline_bytes_.resize(operation.length);
    for (uint32_t i = 0; i < operation.length; ++i) inline_bytes_[i] = content_byte(request.id, i);
    return true;
  }
  const uint64_t most = operation.is_atomic() ? 1 : party.config().max_send_segments;
  const uint64_t pieces = std::min<uint64_t>(random_.between(1, most), operation.length);
  uint32_t done = 0;
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint32_t rest = operation.length - done;
    const uint32_t piece = i + 1 == pieces ? rest : static_cast<uint32_t>(random_.below(rest + 1));
    const uint64_t address = node.memory->allocate(piece);
    if (address == 0) return false;
    if (operation.has_source())
      for (uint32_t byte = 0; byte < piece; ++byte)
        *node.memory->at(address + byte) = content_byte(request.id, done + byte);
    operation.segments.push_back({address, piece, key});
    done += piece;
  }
  return true;
}

bool Workload::post(Party& party) {
  Operation made;
  made.request.id = ++next_id_;
  choose_opcode(party, made);
  const bool is_extended = party.config().type == QpType::kXrcSend;
  const bool names_none = is_extended && choose_queue(party, made) == nullptr && !made.is_local();
  made.is_signaled = random_.in_thousand(700);
  if (party.config().type == QpType::kUd)
    fill_datagram(party, made);
  else if (made.is_local())
    fill_window(party, made);
  else if (made.has_source())
    fill_data(party, made);
  else
    fill_response(party, made);
  made.request.flags = random_.in_thousand(200) ? roce::kSolicited : 0;
  if (made.opcode() == SendOpcode::kWrite) made.request.flags = 0;
  if (random_.in_thousand(100)) made.request.flags |= roce::kFence;
  if (made.is_signaled) made.request.flags |= roce::kSignaled;
  made.is_signaled = made.is_signaled || party.config().signal_all;
  if (!lay_out(party, made)) return false;
  if (names_none) {
    made.must_fail = true;
    made.excuses = status_bit(CompletionStatus::kRemoteInvalidRequest);
  } else if (random_.in_thousand(plan_.bad_requests)) {
    spoil(party, made);
  }

  Stream& stream = party.stream();
  const bool may_be_full = stream.open_count() >= party.config().send_depth;
  Operation& operation = stream.add(std::move(made));
  roce::SendRequest request = operation.request;
  const roce::Segment inline_segment = {reinterpret_cast<uintptr_t>(inline_bytes_.data()), operation.length, 0};
  request.segments = operation.segments;
  if (request.flags & roce::kInline) request.segments = {&inline_segment, 1};
  referee_.note("post", party.config().qpn, request.id, static_cast<uint64_t>(request.opcode), operation.length);
  const bool is_error = party.qp().state() == roce::QpState::kError || party.qp().state() == roce::QpState::kSqe;
  const size_t posted = stream.operations().size();
  const roce::PostError error = party.post(request);
  std::fill(inline_bytes_.begin(), inline_bytes_.end(), std::byte{0xCC});
  if (error == roce::PostError::kNone) return true;
  if (error == roce::PostError::kFull && may_be_full && !is_error && posted == stream.operations().size()) {
    stream.take_back();
    return false;
  }
  referee_.fail("QP %#x: post of %#" PRIx64 " gave %u", party.config().qpn, request.id, static_cast<unsigned>(error));
  return false;
}

}  // namespace dapple::sim

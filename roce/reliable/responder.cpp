// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/reliable/responder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "roce/packet/psn.hpp"

namespace dapple::roce {
namespace {

bool is_atomic(Operation operation) {
  return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd;
}

uint32_t access_for(const Packet& packet) {
  switch (packet.info->operation) {
    case Operation::kReadRequest:
      return kRemoteRead;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return kRemoteAtomic;
    case Operation::kAtomicWrite:
      return kRemoteWrite;
    default:
      return flush_rights(packet.headers.flush);
  }
}

// The bytes that the request needs.
RemoteRange range_of(const Packet& packet) {
  const Headers& headers = packet.headers;
  const Operation operation = packet.info->operation;
  if (is_atomic(operation)) return {headers.atomic.rkey, headers.atomic.address, sizeof(uint64_t)};
  if (operation == Operation::kAtomicWrite) return {headers.reth.rkey, headers.reth.address, sizeof(uint64_t)};
  if (operation == Operation::kReadRequest || !flushes_whole_region(headers.flush))
    return {headers.reth.rkey, headers.reth.address, headers.reth.length};
  return {headers.reth.rkey, headers.reth.address, 0};
}

}  // namespace

bool Responder::prepare(uint8_t max_dest_rd_atomic) {
  const uint32_t room = std::max<uint32_t>(max_dest_rd_atomic, 1);
  std::unique_ptr<Resource[]> resources(new (std::nothrow) Resource[room]);
  if (resources == nullptr) return false;
  resources_ = std::move(resources);
  room_ = room;
  oldest_ = newest_ = 0;
  return true;
}

bool Responder::make_room(uint8_t max_dest_rd_atomic) {
  if (max_dest_rd_atomic <= room_) return true;
  std::unique_ptr<Resource[]> resources(new (std::nothrow) Resource[max_dest_rd_atomic]);
  if (resources == nullptr) return false;
  for (uint64_t number = oldest_; number != newest_; number++) {
    resources[number % max_dest_rd_atomic] = resource(number);
  }
  resources_ = std::move(resources);
  room_ = max_dest_rd_atomic;
  assert_consistent();
  return true;
}

void Responder::start() {
  stop();
  expected_psn_ = core_.values.receive_psn;
}

void Responder::stop() {
  inbound_.reset();
  msn_ = 0;
  gap_ = false;
  established_ = false;
  answers_in_error_ = false;
  oldest_ = newest_ = 0;
  read_bytes_ = 0;
  was_acknowledged();
}

void Responder::assert_consistent() const {
  assert(newest_ - oldest_ <= room_);
  for (uint64_t number = oldest_; number != newest_; number++) assert(resources_[number % room_].consistent());
  assert(expected_psn_ <= kPsnMask && msn_ <= kPsnMask);
  // Nobody asks for an acknowledgement that does not come.
  assert(!is_urgent_ || reply_ != Reply::kNone);
  // A NAK asks for the packet that is expected. In an error it may be for a response.
  assert(reply_ != Reply::kNak || core_.state() == QpState::kError || reply_psn_ == expected_psn_);
  assert(!answers_in_error_ || core_.state() == QpState::kError);
}

void Responder::receive(const Packet& packet) {
  take(packet);
  assert_consistent();
}

void Responder::take(const Packet& packet) {
  if (!established_ && core_.state() == QpState::kRtr) {
    established_ = true;
    core_.raise(QpEvent::kEstablished);
  }
  // IBTA 9.7.4.1.2: the PSN decides first.
  const int32_t place = psn_distance(packet.headers.psn, expected_psn_);
  if (place == 0) return on_new(packet);
  if (place < 0) return on_duplicate(packet);
  if (!gap_) ask_again();
}

void Responder::ask_again() {
  gap_ = true;
  core_.count.sequence_naks_sent++;
  reply_ = Reply::kNak;
  syndrome_ = nak_syndrome(NakCode::kSequence);
  reply_psn_ = expected_psn_;
}

inline void Responder::on_data(const Packet& packet) {
  if (const InboundError error = inbound_.receive(packet); error != InboundError::kNone) return refuse(packet, error);
  executed(packet.loan != nullptr ? packet.loan->packets() : 1, packet.info->has(kEnds), packet.headers.ack_request);
}

// Most packets go this way, so all but the rare parts are inlined.
[[gnu::flatten]] void Responder::on_new(const Packet& packet) {
  gap_ = false;
  if (packet.info->has(kIsAnswered | kHasXrceth)) return on_other(packet);
  on_data(packet);
}

// An RDMA Read and the like, or a request of XRC.
[[gnu::noinline]] void Responder::on_other(const Packet& packet) {
  if (packet.info->has(kHasXrceth) && !select_receives(packet.headers.xrc_srq)) {
    // The sending end has no responder, and its peer no requester.
    if (core_.config.type == QpType::kXrcSend) {
      core_.count.dropped_packets++;
      return;
    }
    return refuse(packet, InboundError::kInvalidRequest);
  }
  return packet.info->has(kIsAnswered) ? on_request_with_response(packet) : on_data(packet);
}

// All packets of a message name one shared receive queue, which may be destroyed between two of them. Then the bytes
// may not go to its receives any more, and nobody would learn of the message.
bool Responder::select_receives(uint32_t srq) {
  if ((inbound_.in_message() || core_.has_receive) && srq != srq_) return false;
  uint32_t domain = 0;
  if (!core_.receives.select(srq, domain)) return false;
  srq_ = srq;
  core_.domain = core_.receiver.domain = domain;
  return true;
}

// Of a Write or Read that brings the error state.
[[gnu::cold]] void Responder::tell_refusal(const Packet& packet) const {
  const bool is_read = packet.info->operation == Operation::kReadRequest;
  if (is_read || packet.info->has(kIsWrite)) core_.observer->executed(is_read, 0, true);
}

[[gnu::noinline]] void Responder::refuse(const Packet& packet, InboundError error) {
  const bool comes_again =
      error == InboundError::kLost || error == InboundError::kLater || error == InboundError::kNoReceive;
  const bool is_executed = error == InboundError::kLostCompletion;
  if (core_.observer != nullptr && !comes_again && !is_executed) tell_refusal(packet);
  switch (error) {
    case InboundError::kLost:
      return ask_again();
    case InboundError::kLater:
      // The peer's timer brings it again. No NAK: each would cost one of the peer's retries at once.
      gap_ = true;
      core_.count.dropped_packets++;
      return;
    case InboundError::kNoReceive:
      gap_ = true;
      core_.count.rnr_naks_sent++;
      core_.events.not_ready();
      reply_ = Reply::kNak;
      syndrome_ = rnr_syndrome(core_.values.min_rnr_timer);
      reply_psn_ = expected_psn_;
      return;
    case InboundError::kTooLong:
      core_.finish_receive(CompletionStatus::kLocalLength);
      return fatal_nak(NakCode::kInvalidRequest);
    case InboundError::kLocalAccess:
      core_.finish_receive(CompletionStatus::kLocalProtection);
      return fatal_nak(NakCode::kRemoteOperation);
    case InboundError::kLostCompletion:
      return lose_completion();
    case InboundError::kInvalidation:
      core_.finish_receive(CompletionStatus::kRemoteInvalidRequest);
      return end_silently();
    case InboundError::kRemoteAccess:
      if (!core_.has_receive) {
        core_.raise(QpEvent::kAccessError);
      } else {
        core_.finish_receive(CompletionStatus::kLocalAccess);
      }
      return fatal_nak(NakCode::kRemoteAccess);
    default:
      if (!core_.has_receive) {
        core_.raise(QpEvent::kRequestError);
      } else {
        core_.finish_receive(CompletionStatus::kRemoteInvalidRequest);
      }
      return fatal_nak(NakCode::kInvalidRequest);
  }
}

void Responder::fatal_nak(NakCode code) {
  const uint32_t psn = expected_psn_;
  core_.enter_error();
  answers_in_error_ = true;
  reply_ = Reply::kNak;
  syndrome_ = nak_syndrome(code);
  reply_psn_ = psn;
}

// IBTA 9.9.6.3, class J: the request that brings the error gets no NAK. Its requester retries in vain. The requests
// before it have been executed, so they are acknowledged.
void Responder::end_silently() {
  const uint32_t psn = psn_add(expected_psn_, -1);
  core_.enter_error();
  answers_in_error_ = true;
  reply_ = Reply::kAck;
  syndrome_ = kAckSyndrome;
  reply_psn_ = psn;
}

// IBTA 9.9.3, class G: the peer must not take the message for one that the application has got.
[[gnu::cold]] void Responder::lose_completion() {
  core_.raise(QpEvent::kFatal);
  end_silently();
}

[[gnu::noinline]] void Responder::on_request_with_response(const Packet& packet) {
  // IBTA 9.7.4.1.4 to 9.7.4.1.6: in the midst of another message, not enabled, or more than were agreed on.
  const uint32_t needed = access_for(packet);
  if (inbound_.in_message()) return refuse(packet, InboundError::kInvalidRequest);
  if ((core_.values.access & needed) != needed || core_.values.max_dest_rd_atomic == 0) {
    core_.events.refused(needed);
    return refuse(packet, InboundError::kInvalidRequest);
  }
  if (newest_ - oldest_ == room_) {
    // A requester that keeps to the agreed number has received the whole oldest response; otherwise it would not send
    // this request. A repetition of that response that still waits for the wire is useless.
    const Resource& last = resource(oldest_);
    if (last.answered < last.packets) return refuse(packet, InboundError::kInvalidRequest);
    oldest_++;
  }
  assert(newest_ - oldest_ < room_);
  Resource& fresh = resource(newest_);
  fresh = Resource{};
  const InboundError error = execute_with_response(packet, fresh);
  if (error != InboundError::kNone) return refuse(packet, error);
  newest_++;
  expected_psn_ = psn_add(expected_psn_, fresh.packets);
  msn_ = psn_add(msn_, 1);
  fresh.msn = msn_;
  // The response acknowledges the requests before it.
  was_acknowledged();
}

InboundError Responder::execute_with_response(const Packet& packet, Resource& made) {
  const Headers& headers = packet.headers;
  made.operation = packet.info->operation;
  made.domain = core_.domain;
  made.first_psn = headers.psn;
  made.packets = made.end = 1;
  Fault fault = Fault::kNone;
  switch (made.operation) {
    case Operation::kReadRequest: {
      made.rkey = headers.reth.rkey;
      made.address = headers.reth.address;
      made.length = headers.reth.length;
      made.continues = headers.continues;
      // IBTA 9.3.2.3.
      if (made.length > uint64_t{1} << 31) return InboundError::kInvalidRequest;
      made.packets = made.end = packets_of(made.length, core_.mtu());
      if (made.length > 0) {
        fault = core_.memory.check_remote(core_.self(), {made.rkey, made.address, made.length}, kRemoteRead);
      }
      break;
    }
    case Operation::kCompareSwap:
      fault = core_.memory.compare_swap(core_.self(), headers.atomic.rkey, headers.atomic.address,
                                        headers.atomic.compare, headers.atomic.swap_or_add, made.original);
      break;
    case Operation::kFetchAdd:
      fault = core_.memory.fetch_add(core_.self(), headers.atomic.rkey, headers.atomic.address,
                                     headers.atomic.swap_or_add, made.original);
      break;
    case Operation::kAtomicWrite: {
      uint64_t value = 0;
      if (packet.payload.size() != sizeof value) return InboundError::kInvalidRequest;
      memcpy(&value, packet.payload.data(), sizeof value);
      fault = core_.memory.atomic_write(core_.self(), headers.reth.rkey, headers.reth.address, value);
      break;
    }
    default:
      fault = core_.memory.flush(core_.self(), {headers.reth.rkey, headers.reth.address, headers.reth.length},
                                 headers.flush);
      break;
  }
  if (fault == Fault::kNone) return InboundError::kNone;
  if (fault == Fault::kLater) return InboundError::kLater;
  if (fault == Fault::kUnaligned) return InboundError::kInvalidRequest;
  core_.events.denied(range_of(packet), access_for(packet));
  return InboundError::kRemoteAccess;
}

// --- Duplicates

Responder::Resource* Responder::find(uint32_t psn) {
  for (uint64_t number = newest_; number != oldest_; number--) {
    Resource& candidate = resource(number - 1);
    const int32_t place = psn_distance(psn, candidate.first_psn);
    if (place >= 0 && place < static_cast<int32_t>(candidate.packets)) return &candidate;
  }
  return nullptr;
}

// IBTA 9.7.4.4: the same range again, or its rest.
bool Responder::duplicate_read(const Packet& packet, Resource& old) {
  const Reth& reth = packet.headers.reth;
  const uint32_t mtu = core_.mtu();
  const auto first = static_cast<uint32_t>(psn_distance(packet.headers.psn, old.first_psn));
  const uint64_t offset = uint64_t{first} * mtu;
  if (reth.rkey != old.rkey || reth.address != old.address + offset || offset > old.length) return false;
  if (reth.length > old.length - offset) return false;
  // The rest ends where a packet of the first request ended.
  if (offset + reth.length != old.length && reth.length % mtu != 0) return false;
  old.begin = old.next = first;
  old.end = std::min(first + packets_of(reth.length, mtu), old.packets);
  assert(old.consistent());
  return true;
}

void Responder::on_duplicate(const Packet& packet) {
  core_.count.duplicates++;
  const Operation operation = packet.info->operation;
  if (!packet.info->has(kIsAnswered)) {
    // IBTA 9.7.4.4.1: the request that was executed last is acknowledged again. A waiting NAK tells the peer more.
    if (reply_ == Reply::kNak) return;
    reply_ = Reply::kAck;
    is_urgent_ = true;
    syndrome_ = kAckSyndrome;
    reply_psn_ = psn_add(expected_psn_, -1);
    return;
  }
  Resource* old = find(packet.headers.psn);
  if (old == nullptr || old->operation != operation) {
    core_.count.dropped_packets++;
    return;
  }
  if (operation == Operation::kReadRequest) {
    if (!duplicate_read(packet, *old)) core_.count.dropped_packets++;
  } else {
    old->begin = old->next = 0;
    old->end = 1;
  }
}

// --- Responses

bool Responder::send_response(Resource& answer, PacketSink& sink) {
  assert(answer.pending());
  Headers headers;
  headers.destination_qpn = core_.values.destination_qpn;
  headers.psn = psn_add(answer.first_psn, answer.next);
  headers.aeth = {kAckSyndrome, answer.msn};
  headers.atomic_original = answer.original;
  const bool is_first = answer.next == answer.begin;
  const bool is_last = answer.next + 1 == answer.end;
  Operation operation = is_first ? (is_last ? Operation::kReadResponseOnly : Operation::kReadResponseFirst)
                                 : (is_last ? Operation::kReadResponseLast : Operation::kReadResponseMiddle);
  size_t size = 0;
  const uint64_t offset = uint64_t{answer.next} * core_.mtu();
  if (is_atomic(answer.operation)) {
    operation = Operation::kAtomicAcknowledge;
  } else if (answer.operation == Operation::kReadRequest) {
    size = std::min<uint64_t>(core_.mtu(), answer.length - offset);
  }
  headers.opcode = opcode_of(core_.transport, operation);
  headers.pad = pad_of(size);
  const size_t before = kBthSize + opcode_info(headers.opcode).extended_size;
  std::byte* room = sink.reserve(before + size + headers.pad);
  if (room == nullptr) return false;
  write_headers(headers, {room, before});
  write_pad(headers.pad, room + before + size);
  const Fault fault = size == 0 ? Fault::kNone
                                : core_.memory.read({answer.domain, core_.config.qpn},
                                                    {answer.rkey, answer.address + offset, size}, room + before);
  if (fault == Fault::kLater) {
    // As if the response were lost.
    core_.count.dropped_packets++;
    answer.next = answer.end;
    return true;
  }
  if (fault != Fault::kNone) {
    // The region was deregistered after the request was accepted. A repeated request may have come late: its requester
    // has the whole response, and the program has taken its memory back.
    if (answer.answered == answer.packets) {
      core_.count.dropped_packets++;
      answer.next = answer.end;
      return true;
    }
    core_.events.denied({answer.rkey, answer.address + offset, size}, kRemoteRead);
    core_.raise(QpEvent::kAccessError);
    if (core_.observer != nullptr) core_.observer->executed(true, 0, true);
    fatal_nak(NakCode::kRemoteAccess);
    reply_psn_ = headers.psn;
    answers_in_error_ = false;
    return true;
  }
  sink.commit(nullptr);
  answer.next++;
  if (answer.next > answer.answered) {
    answer.answered = answer.next;
    if (core_.observer != nullptr && answer.answered == answer.packets) [[unlikely]]
      tell_observer_of_read(answer);
  }
  return true;
}

// The peer's Read ends when all bytes have left: the program may change them then.
void Responder::tell_observer_of_read(const Resource& answered) {
  if (answered.operation != Operation::kReadRequest) return;
  read_bytes_ += answered.length;
  if (!answered.continues) core_.observer->executed(true, std::exchange(read_bytes_, 0), false);
}

bool Responder::send_acknowledgement(PacketSink& sink) {
  assert(reply_ != Reply::kNone);
  Headers headers;
  headers.opcode = opcode_of(core_.transport, Operation::kAcknowledge);
  headers.destination_qpn = core_.values.destination_qpn;
  headers.psn = reply_psn_;
  headers.aeth = {syndrome_, msn_};
  const size_t size = kBthSize + opcode_info(headers.opcode).extended_size;
  std::byte* room = sink.reserve(size);
  if (room == nullptr) return false;
  write_headers(headers, {room, size});
  sink.commit(nullptr);
  was_acknowledged();
  return true;
}

void Responder::was_acknowledged() {
  reply_ = Reply::kNone;
  unacknowledged_ = 0;
  is_urgent_ = false;
}

bool Responder::transmit_responses(PacketSink& sink) {
  for (uint64_t number = oldest_; number != newest_ && answers(); number++) {
    while (resource(number).pending() && answers()) {
      if (!send_response(resource(number), sink)) return true;
    }
  }
  assert_consistent();
  return reply_ == Reply::kNak && !send_acknowledgement(sink);
}

bool Responder::transmit_acknowledgement(PacketSink& sink) {
  return reply_ != Reply::kNone && !send_acknowledgement(sink);
}

}  // namespace dapple::roce

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/requester.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "roce/data_packet.hpp"
#include "roce/packet/psn.hpp"
#include "roce/syndrome.hpp"

namespace dapple::roce {
namespace {

// The most bytes that one RDMA Read request asks for: the default socket buffer always holds this many.
constexpr uint32_t kChunkBytes = 32 * 1024;

// Bytes of one packet with a reference, at most: the peer does nothing else while it fetches them.
constexpr uint32_t kReferredBytes = 1024 * 1024;
// PSNs in flight, at most, for another reference. Half of all PSNs would be too many to tell old from new.
constexpr int32_t kMaxReferredPsns = 1 << 22;

// Packets in flight if none can be lost. With the PSNs above they are less than half of all.
constexpr uint32_t kMaxWithoutLoss = 1 << 20;
// The packets of a part then: the acknowledgements of a long message show that the peer takes it.
constexpr uint32_t kPartWithoutLoss = 60;

// Messages without a completion that ask for no acknowledgement.
constexpr uint32_t kMaxUnasked = 32;
// With a shorter timeout every message asks.
constexpr Time kMinTimeoutUnasked = 30'000'000;

// The timer grows to at most four times its value.
constexpr uint8_t kMaxPatience = 2;
// From this time on the rough clock is exact enough: the timer is late by a third at most.
constexpr Time kLongWait = 3 * kRoughError;

}  // namespace

bool Requester::make_room(uint8_t max_rd_atomic) {
  if (max_rd_atomic <= chunk_room_) return true;
  const uint32_t room = std::bit_ceil<uint32_t>(max_rd_atomic);
  std::unique_ptr<uint32_t[]> ends(new (std::nothrow) uint32_t[room]);
  if (ends == nullptr) return false;
  for (uint32_t number = chunk_head_; number != chunk_tail_; number++) ends[number & (room - 1)] = end_of_chunk(number);
  chunk_ends_ = std::move(ends);
  chunk_room_ = room;
  return true;
}

void Requester::start() {
  stop();
  next_psn_ = oldest_psn_ = highest_psn_ = reference_end_ = core_.values.send_psn;
  refers_ = true;
  retries_left_ = core_.values.retry_count;
  rnr_retries_left_ = core_.values.rnr_retry;
  take_timeout();
  window_.reset(core_.mtu());
  chunk_ = std::max<uint32_t>(kChunkBytes / core_.mtu(), 1);
}

void Requester::stop() {
  cursor_ = core_.sends.head();
  cursor_packet_ = 0;
  after_others_ = 0;
  next_psn_ = oldest_psn_ = highest_psn_ = reference_end_ = 0;
  unasked_ = 0;
  chunk_head_ = chunk_tail_ = 0;
  placed_ = 0;
  lost_seen_ = false;
  patience_ = 0;
  ack_deadline_ = rnr_deadline_ = kNever;
  draining_ = drained_ = false;
}

void Requester::drain() {
  draining_ = true;
  drained_ = false;
  drain_end_ = core_.sends.head();
  for (; drain_end_ < core_.sends.tail(); drain_end_++) {
    // A request that has a PSN and waits for the window has not begun.
    const SendEntry& entry = core_.sends[drain_end_];
    // The sink has copied a part of the oldest one, without packets.
    if (placed_ > 0 && drain_end_ == core_.sends.head()) continue;
    if (!entry.is_started() || (entry.packets != 0 && !psn_before(entry.first_psn, highest_psn_))) break;
  }
  check_drained();
}

void Requester::resume() {
  draining_ = drained_ = false;
  // The program may have changed the timeout.
  take_timeout();
  if (!outstanding()) ack_deadline_ = kNever;
}

void Requester::check_drained() {
  if (!draining_ || drained_ || core_.sends.head() < drain_end_) return;
  drained_ = true;
  if (core_.values.notify_drained) core_.raise(QpEvent::kSendQueueDrained);
}

uint32_t Requester::cursor_psn() const {
  if (cursor_ == core_.sends.tail()) return next_psn_;
  const SendEntry& entry = core_.sends[cursor_];
  return entry.is_started() ? psn_add(entry.first_psn, cursor_packet_) : next_psn_;
}

// A wire that carries references loses nothing, so the window does not count packets with references, nor the packets
// before them.
uint32_t Requester::in_flight() const {
  return static_cast<uint32_t>(psn_distance(cursor_psn(), reference_end_));
}

// A sink that loses nothing has a limit of its own. A part is a third of the window.
void Requester::set_most_in_flight(bool may_lose_packets) {
  most_in_flight_ = may_lose_packets ? window_.packets() : kMaxWithoutLoss;
  part_ = std::min(std::max<uint32_t>(most_in_flight_ / 3, 1), kPartWithoutLoss);
}

bool Requester::awaits(uint32_t psn) const {
  return !psn_before(psn, oldest_psn_) && psn_before(psn, highest_psn_);
}

void Requester::assert_consistent() const {
  assert(core_.sends.head() <= cursor_ && cursor_ <= core_.sends.tail());
  // The PSNs that were acknowledged, sent and given to requests, in this order. A request of 2^31 bytes may have as
  // many as half of all PSNs.
  assert(!psn_before(highest_psn_, oldest_psn_) && psn_distance(highest_psn_, next_psn_) <= 0);
  assert(!psn_before(cursor_psn(), reference_end_) && !psn_before(reference_end_, oldest_psn_));
  assert(!outstanding() || !core_.sends.empty());
  assert(chunk_tail_ - chunk_head_ <= chunk_room_);
  assert(chunk_tail_ == chunk_head_ || !psn_before(end_of_chunk(chunk_head_), oldest_psn_));
  assert(placed_ == 0 || (!core_.sends.empty() && !core_.sends.front().is_started()));
  assert(patience_ <= kMaxPatience && rnr_retries_left_ <= 7);
  assert(draining_ || !drained_);
  assert(after_others_ <= core_.sends.tail() && (!draining_ || drain_end_ <= core_.sends.tail()));
}

void Requester::move_cursor(uint32_t psn) {
  assert(!psn_before(psn, oldest_psn_));
  while (chunk_tail_ != chunk_head_ && !psn_before(end_of_chunk(chunk_tail_ - 1), psn)) chunk_tail_--;
  cursor_packet_ = unasked_ = 0;
  if (psn_before(psn, reference_end_)) reference_end_ = psn;
  for (cursor_ = core_.sends.head(); cursor_ < core_.sends.tail(); cursor_++) {
    const SendEntry& entry = core_.sends[cursor_];
    if (!entry.is_started()) return;
    const int32_t packet = psn_distance(psn, entry.first_psn);
    if (packet >= 0 && packet < static_cast<int32_t>(entry.packets)) {
      cursor_packet_ = static_cast<uint32_t>(packet);
      return;
    }
  }
}

SendEntry* Requester::oldest_wanting_response() {
  for (uint64_t number = core_.sends.head(); number < core_.sends.tail(); number++) {
    SendEntry& entry = core_.sends[number];
    if (!entry.is_started()) return nullptr;
    if (wants_response(entry.opcode) && !entry.has_failed() && entry.received() < entry.packets) return &entry;
  }
  return nullptr;
}

// --- Sending

bool Requester::start_entry(SendEntry& entry) {
  assert(!entry.is_started() && !is_local(entry.opcode));
  entry.progress = SendEntry::Progress::kStarted;
  entry.first_psn = next_psn_;
  const SendOpcode opcode = entry.opcode;
  if (opcode != SendOpcode::kWrite && opcode != SendOpcode::kRead) after_others_ = cursor_ + 1;
  // IBTA 11.6.2: Local Length Error.
  if (is_too_long(entry)) {
    fail(entry, CompletionStatus::kLocalLength);
    return false;
  }
  if (wants_response(opcode)) {
    // No request is possible: a wait would never end.
    if (core_.values.max_rd_atomic == 0) {
      fail(entry, CompletionStatus::kLocalQpOperation);
      return false;
    }
    const bool has_result = opcode != SendOpcode::kFlush && opcode != SendOpcode::kAtomicWrite;
    if (has_result && core_.memory.check_local(core_.self(), core_.sends.segments(entry), true) != Fault::kNone) {
      fail(entry, CompletionStatus::kLocalProtection);
      return false;
    }
  }
  entry.packets = opcode == SendOpcode::kRead || !wants_response(opcode) ? packets_of(entry.length, core_.mtu()) : 1;
  next_psn_ = psn_add(next_psn_, entry.packets);
  return true;
}

Requester::Step Requester::step_local(SendEntry& entry) {
  assert(!entry.is_started() && entry.packets == 0);
  // A retry of an earlier request could still need the key that this one invalidates.
  const bool is_invalidate = entry.opcode == SendOpcode::kLocalInvalidate;
  if (is_invalidate && core_.sends.head() != cursor_) return Step::kWait;
  entry.progress = SendEntry::Progress::kStarted;
  entry.first_psn = next_psn_;
  const Fault fault = is_invalidate ? core_.memory.invalidate_local(core_.self(), entry.immediate_or_rkey())
                                    : core_.memory.bind_window(core_.self(), entry.bind());
  if (fault != Fault::kNone) {
    fail(entry, is_invalidate ? CompletionStatus::kLocalQpOperation : CompletionStatus::kWindowBind);
    return Step::kWait;
  }
  cursor_++;
  settle();
  return Step::kAgain;
}

uint32_t Requester::chunk_end(const SendEntry& entry) const {
  return std::min(entry.packets, (cursor_packet_ / chunk_ + 1) * chunk_);
}

bool Requester::window_allows(const SendEntry& entry) const {
  const uint32_t flying = in_flight();
  if (!wants_response(entry.opcode)) return flying < most_in_flight_;
  if (chunk_tail_ - chunk_head_ >= core_.values.max_rd_atomic) return false;
  // The peer may have another way to this end than this end has to the peer, so responses always have the window.
  const bool is_alone = flying == 0 || (most_in_flight_ == kMaxWithoutLoss && chunk_tail_ == chunk_head_);
  return is_alone || flying + (chunk_end(entry) - cursor_packet_) <= window_.packets();
}

// Only the oldest entry may be placed: the peer has executed everything before it, so it overtakes nothing. Behind
// Writes and Reads that are on their way as packets, an entry waits for their end, or a queue that is never empty would
// go on with packets for ever. Behind other requests it does not wait, because those may take long.
Requester::Step Requester::step_placement(SendEntry& entry, PacketSink& sink) {
  const bool is_read = entry.opcode == SendOpcode::kRead;
  if (entry.length == 0 || (!is_read && entry.opcode != SendOpcode::kWrite)) return Step::kSend;
  if ((is_read && core_.values.max_rd_atomic == 0) || is_too_long(entry)) return Step::kSend;
  const uint64_t head = core_.sends.head();
  if (cursor_ != head && after_others_ > head) return Step::kSend;
  const Transfer transfer = {core_.self(),
                             is_read,
                             {entry.remote().rkey, entry.remote().address, entry.length},
                             core_.sends.segments(entry),
                             core_.sends.inline_bytes(entry)};
  if (cursor_ != head) return sink.would_place(transfer) ? Step::kWait : Step::kSend;
  assert(!outstanding());
  switch (sink.place(transfer, placed_)) {
    case Placed::kNo:
      placed_ = 0;
      return Step::kSend;
    case Placed::kPart:
      return Step::kFull;
    case Placed::kWhole:
      break;
  }
  placed_ = 0;
  core_.finish_send(CompletionStatus::kSuccess);
  cursor_++;
  return Step::kAgain;
}

Requester::Step Requester::step_cursor(SendEntry& entry, PacketSink& sink) {
  if (draining_ && cursor_ >= drain_end_) return Step::kWait;
  if (!entry.is_started()) {
    // IBTA 10.8.3.3: a fence waits for the RDMA Reads and atomics before it.
    if ((entry.flags & kFence) && oldest_wanting_response() != nullptr) return Step::kWait;
    if (is_local(entry.opcode)) return step_local(entry);
    if (const Step step = step_placement(entry, sink); step != Step::kSend) return step;
    if (!start_entry(entry)) return Step::kWait;
  } else if (is_local(entry.opcode) && !entry.has_failed()) {
    cursor_++;  // a retry passes this entry again
    return Step::kAgain;
  }
  if (entry.has_failed()) return Step::kWait;
  if (window_allows(entry)) return Step::kSend;
  // In SQD the program may have taken the last right to Reads away.
  const bool never = wants_response(entry.opcode) && core_.values.max_rd_atomic == 0 && !outstanding();
  if (never) fail(entry, CompletionStatus::kLocalQpOperation);
  return Step::kWait;
}

void Requester::sent(SendEntry& entry, uint32_t end) {
  assert(entry.is_started() && cursor_packet_ < end && end <= entry.packets);
  const uint32_t psn = psn_add(entry.first_psn, end);
  if (psn_before(highest_psn_, psn)) {
    highest_psn_ = psn;
  } else {
    core_.count.retransmitted_packets++;
  }
  cursor_packet_ = end;
  if (end < entry.packets) return;
  cursor_++;
  cursor_packet_ = 0;
}

// A packet that was sent before goes with its bytes: the peer may not have been able to fetch them.
bool Requester::send_reference(SendEntry& entry, PacketSink& sink) {
  const SendOpcode opcode = entry.opcode;
  const uint32_t psn = cursor_psn();
  const uint32_t count = std::min(entry.packets - cursor_packet_, std::max<uint32_t>(kReferredBytes / core_.mtu(), 1));
  if (!refers_ || count == 1 || entry.is_inline() || psn_before(psn, highest_psn_)) return false;
  if (opcode != SendOpcode::kSend && opcode != SendOpcode::kSendImmediate && opcode != SendOpcode::kSendInvalidate)
    return false;
  if (psn_distance(psn_add(psn, count), oldest_psn_) > kMaxReferredPsns) return false;
  const DataPacket packet = {.transport = core_.transport,
                             .ack_request = true,
                             .number = cursor_packet_,
                             .count = count,
                             .destination_qpn = core_.values.destination_qpn};
  if (!emit_reference(core_, entry, packet, sink)) return false;
  unasked_ = 0;
  message_ended_ = false;
  reference_end_ = psn_add(psn, count);
  sent(entry, cursor_packet_ + count);
  return true;
}

bool Requester::send_data(SendEntry& entry, PacketSink& sink) {
  if (entry.packets - cursor_packet_ > 1 && send_reference(entry, sink)) return true;
  const bool ack_request =
      cursor_packet_ + 1 == entry.packets || in_flight() + 1 >= most_in_flight_ || unasked_ + 1 >= part_;
  const DataPacket packet = {.transport = core_.transport,
                             .ack_request = ack_request,
                             .number = cursor_packet_,
                             .destination_qpn = core_.values.destination_qpn};
  switch (emit_data(core_, entry, packet, sink)) {
    case Emitted::kFull:
      return false;
    case Emitted::kFault:
      fail(entry, CompletionStatus::kLocalProtection);
      return true;
    case Emitted::kSent:
      break;
  }
  unasked_ = ack_request ? 0 : unasked_ + 1;
  message_ended_ = false;
  sent(entry, cursor_packet_ + 1);
  return true;
}

bool Requester::send_request(SendEntry& entry, PacketSink& sink) {
  const SendEntry::Remote& remote = entry.remote();
  Headers headers;
  headers.destination_qpn = core_.values.destination_qpn;
  headers.psn = cursor_psn();
  headers.ack_request = true;
  headers.xrc_srq = remote.srq;
  headers.reth = {remote.address, remote.rkey, entry.length};
  uint32_t end = 1;
  Operation operation = Operation::kReadRequest;
  switch (entry.opcode) {
    case SendOpcode::kCompareSwap:
      operation = Operation::kCompareSwap;
      headers.atomic = {remote.address, remote.rkey, remote.swap, remote.operand};
      break;
    case SendOpcode::kFetchAdd:
      operation = Operation::kFetchAdd;
      headers.atomic = {remote.address, remote.rkey, remote.operand, 0};
      break;
    case SendOpcode::kFlush:
      operation = Operation::kFlush;
      headers.flush = static_cast<uint32_t>(remote.operand);
      break;
    case SendOpcode::kAtomicWrite:
      operation = Operation::kAtomicWrite;
      break;
    default: {
      end = chunk_end(entry);
      const uint64_t offset = uint64_t{cursor_packet_} * core_.mtu();
      headers.reth.address += offset;
      headers.reth.length =
          static_cast<uint32_t>(std::min<uint64_t>(entry.length, uint64_t{end} * core_.mtu()) - offset);
      headers.continues = end < entry.packets;
      break;
    }
  }
  headers.opcode = opcode_of(core_.transport, operation);
  const size_t before = kBthSize + opcode_info(headers.opcode).extended_size;
  const size_t size = operation == Operation::kAtomicWrite ? sizeof remote.operand : 0;
  std::byte* room = sink.reserve(before + size);
  if (room == nullptr) return false;
  write_headers(headers, {room, before});
  if (size > 0) memcpy(room + before, &remote.operand, size);
  sink.commit(nullptr);
  assert(chunk_tail_ - chunk_head_ < chunk_room_);
  end_of_chunk(chunk_tail_++) = psn_add(entry.first_psn, end - 1);
  unasked_ = 0;
  sent(entry, end);
  return true;
}

// A long message goes out in thirds of the window, because the kernel takes about as long for a few packets as for
// many. While one part is acknowledged, others are on their way: each has a packet that asks. The acknowledgement of a
// message that ended may be the last one. If all packets behind it are lost, the ones that follow provoke a NAK.
bool Requester::waits_for_part() const {
  if (message_ended_ || cursor_ == core_.sends.tail()) return false;
  const SendEntry& entry = core_.sends[cursor_];
  if (!entry.is_started() || entry.has_failed() || wants_response(entry.opcode)) return false;
  const uint32_t flying = in_flight();
  const uint32_t free = most_in_flight_ - std::min(flying, most_in_flight_);
  return flying > 0 && free < part_ && free < entry.packets - cursor_packet_;
}

bool Requester::transmit(Now now, PacketSink& sink) {
  if (rnr_deadline_ != kNever) {
    if (now.exact() < rnr_deadline_) return false;
    rnr_deadline_ = kNever;
  }
  set_most_in_flight(sink.may_lose_packets());
  if (waits_for_part()) return false;
  bool is_full = false;
  while (!is_full && cursor_ < core_.sends.tail()) {
    SendEntry& entry = core_.sends[cursor_];
    const Step step = step_cursor(entry, sink);
    if (core_.state() == QpState::kError) return false;
    if (step == Step::kAgain) continue;
    is_full = step == Step::kFull;
    if (step == Step::kWait || is_full) break;
    is_full = !(wants_response(entry.opcode) ? send_request(entry, sink) : send_data(entry, sink));
    if (core_.state() == QpState::kError) return false;
  }
  set_timer(now);
  check_drained();
  assert_consistent();
  return is_full;
}

bool Requester::may_send_at_once(bool may_lose_packets) {
  set_most_in_flight(may_lose_packets);
  return cursor_ == core_.sends.tail() && !draining_ && rnr_deadline_ == kNever && in_flight() < most_in_flight_;
}

// A request without a completion needs an acknowledgement only so that its place in the queue becomes free, or a
// request behind it can be done. The peer may hold it for a few milliseconds.
bool Requester::wants_acknowledgement(uint8_t flags) const {
  return short_timer_ || core_.has_completion(flags) || unasked_ + 1 >= kMaxUnasked || core_.sends.is_half_full();
}

void Requester::take_timeout() {
  short_timer_ = ack_time(core_.values.timeout) < kMinTimeoutUnasked;
}

void Requester::set_timer(Now now) {
  if (ack_deadline_ != kNever || rnr_deadline_ != kNever || !outstanding()) return;
  // IBTA 9.7.6.1.3 leaves the timer between once and four times its value. The first retry comes early, for a lost
  // packet; later ones give time to a peer whose system does not run it just now.
  const Time value = ack_time(core_.values.timeout);
  const Time wait = value << patience_;
  if (value == kNever) return;
  was_acknowledged_ = false;
  ack_deadline_ = wait < kLongWait ? now.exact() + wait : now.rough() + kRoughError + wait;
}

// No clock is read for each acknowledgement: the deadline stays, and if it comes, the timer starts again. So it runs
// for up to twice its value.
void Requester::restart_timer(Now now) {
  was_acknowledged_ = true;
  rnr_deadline_ = kNever;
  if (patience_ > 0) ack_deadline_ = kNever;
  patience_ = 0;
  set_timer(now);
}

// --- Acknowledgements and responses

void Requester::fail(SendEntry& entry, CompletionStatus status) {
  core_.sends.fail(entry, status);
  settle();
}

void Requester::settle() {
  while (!core_.sends.empty() && core_.sends.front().is_started()) {
    const SendEntry& entry = core_.sends.front();
    if (entry.has_failed()) {
      core_.finish_send(entry.status);
      core_.enter_error();
      return;
    }
    if (entry.packets != 0) return;
    core_.finish_send(CompletionStatus::kSuccess);
  }
}

bool Requester::acknowledge(Now now, uint32_t psn) {
  assert(awaits(psn));
  uint32_t oldest = psn_add(psn, 1);
  bool is_complete = true;
  // Requests without a completion are often many, and leave the queue together.
  if (const uint64_t quiet = core_.sends.quiet(); quiet > 0) {
    const int32_t covered = psn_distance(psn, core_.sends.front().first_psn) + 1;
    if (covered > 0) {
      core_.sends.pop(std::min<uint64_t>(quiet, static_cast<uint32_t>(covered)));
      message_ended_ = true;
    }
  }
  while (!core_.sends.empty() && core_.sends.front().is_started() && !core_.sends.front().has_failed()) {
    const SendEntry& entry = core_.sends.front();
    if (entry.packets != 0) {
      if (psn_before(psn, entry.first_psn)) break;
      if (wants_response(entry.opcode)) {
        const uint32_t expected = psn_add(entry.first_psn, entry.received());
        if (entry.received() < entry.packets) {
          is_complete = psn_before(psn, expected);
          if (!is_complete) oldest = expected;
          break;
        }
      } else if (psn_before(psn, psn_add(entry.first_psn, entry.packets - 1))) {
        break;
      }
    }
    core_.finish_send(CompletionStatus::kSuccess);
    message_ended_ = true;
  }
  const int32_t advance = psn_distance(oldest, oldest_psn_);
  if (advance > 0) {
    oldest_psn_ = oldest;
    if (psn_before(reference_end_, oldest)) reference_end_ = oldest;
    while (chunk_head_ != chunk_tail_ && psn_before(end_of_chunk(chunk_head_), oldest)) chunk_head_++;
    if (cursor_ < core_.sends.head() || psn_before(cursor_psn(), oldest)) move_cursor(oldest);
    window_.acknowledged(static_cast<uint32_t>(advance));
    retries_left_ = core_.values.retry_count;
    rnr_retries_left_ = core_.values.rnr_retry;
    lost_seen_ = false;
    restart_timer(now);
  }
  settle();
  check_drained();
  return is_complete;
}

void Requester::retry_lost(Now now, uint32_t psn) {
  if (lost_seen_) return;
  lost_seen_ = true;
  window_.lost();
  move_cursor(psn);
  ack_deadline_ = kNever;
  set_timer(now);
}

void Requester::receive(Now now, const Packet& packet) {
  if (packet.info->operation == Operation::kAcknowledge) {
    on_acknowledgement(now, packet.headers.psn, packet.headers.aeth.syndrome);
  } else {
    on_response(now, packet);
  }
  assert_consistent();
}

void Requester::take_acknowledgement(Now now, const Acknowledgement& acknowledgement) {
  on_acknowledgement(now, acknowledgement.psn & kPsnMask, static_cast<uint8_t>(acknowledgement.syndrome));
  assert_consistent();
}

void Requester::on_acknowledgement(Now now, uint32_t psn, uint8_t syndrome) {
  if (!awaits(psn)) return;  // IBTA 9.7.5.1.1: a ghost acknowledgement
  const bool is_ack = syndrome_kind(syndrome) == SyndromeKind::kAck;
  // A NAK acknowledges the packets before it.
  const bool is_complete = is_ack ? acknowledge(now, psn) : psn == oldest_psn_ || acknowledge(now, psn_add(psn, -1));
  if (core_.state() == QpState::kError) return;
  if (!is_complete) {
    retry_lost(now, oldest_psn_);  // IBTA 9.7.5.2.8: an implied NAK
  } else if (!is_ack && psn == oldest_psn_) {
    on_nak(now, syndrome);
  }
}

void Requester::on_nak(Now now, uint8_t syndrome) {
  if (core_.sends.empty() || !core_.sends.front().is_started()) return;
  SendEntry& entry = core_.sends.front();
  const uint8_t value = syndrome_value(syndrome);
  if (syndrome_kind(syndrome) == SyndromeKind::kRnrNak) {
    // A copy: the request has not been sent again since the last one.
    if (rnr_deadline_ != kNever) return;
    if (rnr_retries_left_ == 0) return fail(entry, CompletionStatus::kRnrRetryExceeded);
    if (rnr_retries_left_ != 7) rnr_retries_left_--;
    move_cursor(oldest_psn_);
    ack_deadline_ = kNever;
    rnr_deadline_ = now.exact() + rnr_time(value);
    return;
  }
  if (syndrome_kind(syndrome) != SyndromeKind::kNak) return;
  switch (static_cast<NakCode>(value)) {
    case NakCode::kSequence:
      // The peer could not fetch the bytes. They are not lost on a network, so this is no retry.
      if (refers_ && psn_before(oldest_psn_, reference_end_)) {
        refers_ = false;
        move_cursor(oldest_psn_);
        ack_deadline_ = kNever;
        return set_timer(now);
      }
      if (lost_seen_) return;
      if (retries_left_ == 0) return fail(entry, CompletionStatus::kRetryExceeded);
      retries_left_--;
      retry_lost(now, oldest_psn_);
      return;
    case NakCode::kInvalidRequest:
      return fail(entry, CompletionStatus::kRemoteInvalidRequest);
    case NakCode::kRemoteAccess:
      return fail(entry, CompletionStatus::kRemoteAccess);
    case NakCode::kRemoteOperation:
      return fail(entry, CompletionStatus::kRemoteOperation);
  }
}

CompletionStatus Requester::take_response(const SendEntry& entry, const Packet& packet) {
  const Operation operation = packet.info->operation;
  uint64_t offset = 0;
  uint64_t original = packet.headers.atomic_original;
  std::span<const std::byte> bytes = packet.payload;
  switch (entry.opcode) {
    case SendOpcode::kRead:
      if (operation == Operation::kAtomicAcknowledge) return CompletionStatus::kBadResponse;
      offset = uint64_t{entry.received()} * core_.mtu();
      if (bytes.size() != std::min<uint64_t>(core_.mtu(), entry.length - offset)) return CompletionStatus::kBadResponse;
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
  const Fault fault =
      core_.memory.scatter(core_.self(), core_.sends.segments(entry), offset, bytes.data(), bytes.size());
  return fault == Fault::kNone ? CompletionStatus::kSuccess : CompletionStatus::kLocalProtection;
}

void Requester::on_response(Now now, const Packet& packet) {
  const uint32_t psn = packet.headers.psn;
  if (!awaits(psn)) return;
  SendEntry* entry = oldest_wanting_response();
  if (entry == nullptr) {
    core_.count.dropped_packets++;
    return;
  }
  const uint32_t expected = psn_add(entry->first_psn, entry->received());
  if (psn_before(psn, expected)) return;  // it has come before
  if (expected != oldest_psn_ && psn_before(oldest_psn_, expected)) {
    // A response acknowledges the requests before it.
    acknowledge(now, psn_add(expected, -1));
    if (core_.state() == QpState::kError) return;
  }
  if (psn != expected) return retry_lost(now, expected);
  assert(entry->is_started() && wants_response(entry->opcode) && !entry->has_failed());
  const CompletionStatus status = take_response(*entry, packet);
  if (status != CompletionStatus::kSuccess) return fail(*entry, status);
  entry->set_received(entry->received() + 1);
  assert(entry->received() <= entry->packets);
  acknowledge(now, psn);
}

Time Requester::deadline() const {
  return std::min(outstanding() ? ack_deadline_ : kNever, rnr_deadline_);
}

void Requester::expire(Now now) {
  // Clears the deadline, so that it does not come again at once if the wire is full.
  if (now.exact() >= rnr_deadline_) rnr_deadline_ = kNever;
  if (now.exact() < ack_deadline_ || core_.sends.empty()) return;
  ack_deadline_ = kNever;
  if (was_acknowledged_) return set_timer(now);
  core_.count.timeouts++;
  SendEntry& entry = core_.sends.front();
  if (retries_left_ == 0) return fail(entry, CompletionStatus::kRetryExceeded);
  retries_left_--;
  if (patience_ < kMaxPatience) patience_++;
  lost_seen_ = false;
  window_.timed_out();
  move_cursor(oldest_psn_);
  set_timer(now);
  assert_consistent();
}

}  // namespace dapple::roce

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/reliable/requester.hpp"

#include <algorithm>
#include <cassert>

#include "roce/core/data_packet.hpp"
#include "roce/core/syndrome.hpp"
#include "roce/packet/psn.hpp"
#include "roce/reliable/request_packet.hpp"

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

}  // namespace

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
  chunk_ends_.clear();
  placed_ = 0;
  lost_seen_ = false;
  timer_.reset();
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
  if (!outstanding()) timer_.cancel();
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
  assert(chunk_ends_.empty() || !psn_before(chunk_ends_.oldest(), oldest_psn_));
  assert(placed_ == 0 || (!core_.sends.empty() && !core_.sends.front().is_started()));
  assert(rnr_retries_left_ <= 7);
  timer_.assert_consistent();
  assert(draining_ || !drained_);
  assert(after_others_ <= core_.sends.tail() && (!draining_ || drain_end_ <= core_.sends.tail()));
}

void Requester::move_cursor(uint32_t psn) {
  assert(!psn_before(psn, oldest_psn_));
  chunk_ends_.drop_from(psn);
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
  if (chunk_ends_.count() >= core_.values.max_rd_atomic) return false;
  // The peer may have another way to this end than this end has to the peer, so responses always have the window.
  const bool is_alone = flying == 0 || (most_in_flight_ == kMaxWithoutLoss && chunk_ends_.empty());
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
  const uint32_t end = chunk_end(entry);
  if (!emit_request(core_, entry, cursor_packet_, end, sink)) return false;
  chunk_ends_.add(psn_add(entry.first_psn, end - 1));
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
  if (!timer_.end_wait_for_receiver(now)) return false;
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
  return cursor_ == core_.sends.tail() && !draining_ && !timer_.waits_for_receiver() && in_flight() < most_in_flight_;
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
  if (outstanding()) timer_.start(now, ack_time(core_.values.timeout));
}

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

}  // namespace dapple::roce

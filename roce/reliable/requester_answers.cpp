// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requester takes acknowledgements, NAKs and responses here, and sends again when none of them comes in time.
#include <algorithm>
#include <cassert>

#include "roce/core/syndrome.hpp"
#include "roce/packet/psn.hpp"
#include "roce/reliable/request_packet.hpp"
#include "roce/reliable/requester.hpp"

namespace dapple::roce {

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
    chunk_ends_.drop_before(oldest);
    if (cursor_ < core_.sends.head() || psn_before(cursor_psn(), oldest)) move_cursor(oldest);
    window_.acknowledged(static_cast<uint32_t>(advance));
    retries_left_ = core_.values.retry_count;
    rnr_retries_left_ = core_.values.rnr_retry;
    lost_seen_ = false;
    timer_.acknowledged();
    set_timer(now);
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
  timer_.cancel();
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
    if (timer_.waits_for_receiver()) return;
    if (rnr_retries_left_ == 0) return fail(entry, CompletionStatus::kRnrRetryExceeded);
    if (rnr_retries_left_ != 7) rnr_retries_left_--;
    move_cursor(oldest_psn_);
    timer_.wait_for_receiver(now, rnr_time(value));
    return;
  }
  if (syndrome_kind(syndrome) != SyndromeKind::kNak) return;
  switch (static_cast<NakCode>(value)) {
    case NakCode::kSequence:
      // The peer could not fetch the bytes. They are not lost on a network, so this is no retry.
      if (refers_ && psn_before(oldest_psn_, reference_end_)) {
        refers_ = false;
        move_cursor(oldest_psn_);
        timer_.cancel();
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
  const CompletionStatus status = take_response(core_, *entry, packet);
  if (status != CompletionStatus::kSuccess) return fail(*entry, status);
  entry->set_received(entry->received() + 1);
  assert(entry->received() <= entry->packets);
  acknowledge(now, psn);
}

Time Requester::deadline() const {
  return timer_.deadline(outstanding());
}

void Requester::expire(Now now) {
  timer_.end_wait_for_receiver(now);
  if (!timer_.has_come(now) || core_.sends.empty()) return;
  if (!timer_.expire()) return set_timer(now);
  core_.count.timeouts++;
  SendEntry& entry = core_.sends.front();
  if (retries_left_ == 0) return fail(entry, CompletionStatus::kRetryExceeded);
  retries_left_--;
  timer_.be_patient();
  lost_seen_ = false;
  window_.timed_out();
  move_cursor(oldest_psn_);
  set_timer(now);
  assert_consistent();
}

}  // namespace dapple::roce

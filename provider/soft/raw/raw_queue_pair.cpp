// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/raw_queue_pair.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "provider/soft/raw/checksums.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

using roce::CompletionStatus;
using roce::QpState;

std::unique_ptr<RawQueuePair> RawQueuePair::create(const roce::QpConfig& qp_config, roce::Memory& qp_memory,
                                                   roce::CompletionSink& sent_to, roce::CompletionSink& received_to,
                                                   roce::ReceiveSource& qp_receives, roce::EventSink& qp_events,
                                                   FrameSender* sender, Pacer* pacer) {
  assert(qp_config.type == roce::QpType::kRawPacket);
  assert((sender != nullptr && pacer != nullptr) || qp_config.send_depth == 0);
  std::unique_ptr<RawQueuePair> made(new (std::nothrow) RawQueuePair(qp_config, qp_memory, sent_to, received_to,
                                                                     qp_receives, qp_events, sender, pacer));
  if (made == nullptr || !made->allocate()) return nullptr;
  return made;
}

bool RawQueuePair::prepare(QpState to, const roce::QpAttributes&) {
  if (to == QpState::kRts && room_ == nullptr && sender_ != nullptr) {
    room_.reset(new (std::nothrow) std::byte[kRoom]);
    return room_ != nullptr;
  }
  return true;
}

// No frame is under way between two calls, so the send queue is drained at once.
void RawQueuePair::entered(QpState) {
  rests_ = false;
  if (state() == QpState::kSqd && values.notify_drained) raise(roce::QpEvent::kSendQueueDrained);
}

CompletionStatus RawQueuePair::build(const roce::SendEntry& entry, std::span<std::byte> to, size_t& size) {
  if (!roce::operations_of(config.type).has(entry.opcode)) return CompletionStatus::kLocalQpOperation;
  if (entry.length < kEthernetHeader || entry.length > kLongestFrame) return CompletionStatus::kLocalLength;
  size = std::max<size_t>(entry.length, kShortestFrame);
  assert(size <= to.size());
  if (entry.is_inline()) {
    memcpy(to.data(), sends.inline_bytes(entry), entry.length);
  } else if (memory.gather(self(), sends.segments(entry), 0, to.data(), entry.length) != roce::Fault::kNone) {
    return CompletionStatus::kLocalProtection;
  }
  memset(&to[entry.length], 0, size - entry.length);
  if ((entry.flags & roce::kIpChecksum) != 0) complete_checksums(to.first(size));
  return CompletionStatus::kSuccess;
}

roce::Core::SendStep RawQueuePair::send_some(roce::Now now) {
  iovec frames[kFramesAtOnce];
  size_t built = 0, used = 0;
  CompletionStatus status = CompletionStatus::kSuccess;
  const auto waiting = static_cast<size_t>(sends.tail() - sends.head());
  const bool is_paced = pacer_->is_on();
  const roce::Time start = is_paced ? now.exact() : 0;
  if (is_paced) pacer_->begin(start);
  Pacer ahead = *pacer_;
  while (built < std::min(waiting, kFramesAtOnce)) {
    if (is_paced && !ahead.may_send(start)) {
      rests_ = built == 0;
      break;
    }
    const roce::SendEntry& entry = sends[sends.head() + built];
    const std::span<std::byte> room(&room_[used], kRoom - used);
    if (room.size() < std::max<size_t>(entry.length, kShortestFrame) && entry.length <= kLongestFrame) break;
    size_t size = 0;
    status = build(entry, room, size);
    if (status != CompletionStatus::kSuccess) break;
    frames[built++] = {room.data(), size};
    used += size;
    if (is_paced) ahead.sent(start, size);
  }
  if (rests_) return SendStep::kAtRest;
  int error = 0;
  const size_t sent = built == 0 ? 0 : sender_->send({frames, built}, error);
  assert(sent == built || error != 0);
  for (size_t i = 0; i < sent; i++) {
    if (is_paced) pacer_->sent(start, frames[i].iov_len);
    finish_send(CompletionStatus::kSuccess);
  }
  if (error == EAGAIN) return SendStep::kFull;
  if (error == EMSGSIZE) status = CompletionStatus::kLocalLength;
  if (status == CompletionStatus::kSuccess) return SendStep::kDone;
  finish_send(status);
  return SendStep::kFailed;
}

bool RawQueuePair::transmit(roce::Now now, roce::PacketSink&) {
  rests_ = false;
  return state() == QpState::kRts && send_by([&] { return send_some(now); });
}

void RawQueuePair::receive(roce::Now, const roce::Packet& packet) {
  using Reason = roce::DroppedMessage::Reason;
  if (packet.info != nullptr) return;
  const std::span<const std::byte> bytes = packet.payload;
  const bool is_ready = state() >= QpState::kRtr && state() <= QpState::kSqe;
  // Programs make flows before the queue pair is ready, so nobody hears of these frames.
  if (!is_ready) {
    count.dropped_packets++;
    return;
  }
  if (!take_receive()) return drop({.reason = Reason::kNoReceive, .found = bytes.size()});
  // As a NIC: the receive queue cannot go on after an error.
  if (bytes.size() > receive_room) {
    finish_receive(CompletionStatus::kLocalLength);
    return enter_error();
  }
  const std::span<const roce::Segment> segments(receive_request.segments, receive_request.segment_count);
  if (memory.scatter(receiver, segments, 0, bytes.data(), bytes.size()) != roce::Fault::kNone) {
    finish_receive(CompletionStatus::kLocalProtection);
    return enter_error();
  }
  received = bytes.size();
  roce::Completion completion;
  Frame frame;
  if (parse_frame(bytes, frame) && has_good_checksums(frame)) completion.flags = roce::kIpChecksumGood;
  finish_receive(CompletionStatus::kSuccess, completion);
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_receives.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>
#include <mutex>

namespace dapple::soft {

bool TagReceives::may_follow(Kind from, Kind to) {
  return (from == Kind::kNoMessage) != (to == Kind::kNoMessage);
}

void TagReceives::enter(Kind kind) {
  assert(may_follow(kind_, kind));
  kind_ = kind;
}

bool TagReceives::look_at(const roce::Packet& packet) {
  packet_ = &packet;
  head_size_ = 0;
  if (!packet.info->has(roce::kStarts) || packet.info->has(roce::kIsWrite)) return true;
  if (packet.loan == nullptr) {
    head_size_ = std::min(packet.payload.size(), sizeof head_);
    if (head_size_ != 0) memcpy(head_, packet.payload.data(), head_size_);
    return true;
  }
  head_size_ = std::min<uint64_t>(packet.loan->length(), sizeof head_);
  return packet.loan->copy(0, head_, head_size_);
}

bool TagReceives::is_in_one_packet() const {
  return packet_->info->has(roce::kEnds) && (packet_->loan == nullptr || packet_->loan->packets() == 1);
}

bool TagReceives::take(roce::ReceiveRequest& request) {
  assert(packet_ != nullptr && limits_ != nullptr);
  // The end of a Write with immediate data takes a receive, too.
  if (packet_->info->has(roce::kIsWrite)) return take_of_queue(request, Kind::kPlain);
  header_ = parse_tag_header({head_, head_size_});
  return header_.kind == TagHeader::Kind::kNone ? take_of_queue(request, Kind::kNoTag) : take_tagged(request);
}

bool TagReceives::take_of_queue(roce::ReceiveRequest& request, Kind kind) {
  if (!queue_.take(request)) return false;
  enter(kind);
  segments_ = request.segments;
  skipped_ = 0;
  is_told_ = false;
  return true;
}

bool TagReceives::take_tagged(roce::ReceiveRequest& request) {
  uint32_t entry = TagList::kNone;
  Kind kind = Kind::kEager;
  {
    const std::lock_guard lock(list_.mutex);
    entry = list_.find(header_.tag.tag);
    if (entry == TagList::kNone) {
      if (!take_of_queue(request, Kind::kUnexpected)) return false;
      list_.count_unexpected();
      return true;
    }
    if (header_.kind == TagHeader::Kind::kRendezvous) kind = kind_of_rendezvous(entry);
    // The peer sends it again, when others have ended.
    if (kind == Kind::kRendezvous && !rendezvous_.has_room()) return false;
    list_.take(entry);
  }
  fill(request, kind, entry);
  if (kind == Kind::kEager && !is_in_one_packet()) tell_match(request.id);
  return true;
}

// The device does what fits: the program gets the headers of all others.
TagReceives::Kind TagReceives::kind_of_rendezvous(uint32_t entry) const {
  const bool is_short = is_in_one_packet() && packet_->payload.size() <= kMaxRendezvousMessage;
  const uint64_t most = std::min(limits_->most_to_read(), roce::length_of(list_.segments_of(entry)));
  return is_short && limits_->most_to_read() != 0 && header_.length <= most ? Kind::kRendezvous : Kind::kIncomplete;
}

void TagReceives::fill(roce::ReceiveRequest& request, Kind kind, uint32_t entry) {
  enter(kind);
  entry_ = entry;
  is_told_ = false;
  request.id = list_.id_of(entry);
  request.mark = list_.mark_of(entry);
  skipped_ = kind == Kind::kEager ? kTagHeaderSize : kind == Kind::kRendezvous ? kMaxRendezvousMessage : 0;
  // A segment that stands for the bytes that have no memory.
  request.segment_count = 0;
  if (skipped_ != 0) request.segments[request.segment_count++] = {0, skipped_, 0};
  if (kind != Kind::kRendezvous) {
    const std::span<const roce::Segment> segments = list_.segments_of(entry);
    copy_segments(segments, request.segments + request.segment_count);
    request.segment_count += static_cast<uint32_t>(segments.size());
  }
  segments_ = request.segments;
}

// The match is told at once, in its order among others. The completion of the bytes may come much later. If this one is
// lost, the queue is full, and the other one will be lost, too.
void TagReceives::tell_match(uint64_t id) {
  roce::Completion matched;
  matched.request_id = id;
  matched.opcode = roce::CompletionOpcode::kTagReceive;
  matched.flags = roce::kTagMatch;
  matched.qpn = qpn_;
  received_.complete_match(matched, header_.tag);
  is_told_ = true;
}

bool TagReceives::complete(const roce::Completion& completion) {
  assert(kind_ != Kind::kNoMessage);
  roce::Completion shown = completion;
  if (has_entry()) return complete_tagged(shown);
  if (kind_ == Kind::kNoTag) shown.opcode = roce::CompletionOpcode::kReceiveNoTag;
  if (kind_ == Kind::kUnexpected) {
    shown.opcode = roce::CompletionOpcode::kTagReceive;
    const std::lock_guard lock(list_.mutex);
    if (list_.is_far_behind()) shown.flags |= roce::kTagSyncWanted;
  }
  enter(Kind::kNoMessage);
  return received_.complete(shown);
}

bool TagReceives::complete_tagged(roce::Completion shown) {
  const bool is_good = shown.status == roce::CompletionStatus::kSuccess;
  shown.opcode = roce::CompletionOpcode::kTagReceive;
  shown.byte_count -= std::min(shown.byte_count, skipped_);
  if (kind_ == Kind::kRendezvous && is_good) {
    rendezvous_.begin({header_, head_, entry_, shown.solicited});
    shown.flags |= roce::kTagMatch;
    shown.mark = 0;  // that of the completion with the bytes
    shown.byte_count = 0;
    enter(Kind::kNoMessage);
    return received_.complete_match(shown, header_.tag);
  }
  if (kind_ == Kind::kIncomplete && is_good) shown.status = roce::CompletionStatus::kRendezvousIncomplete;
  release();
  if (!is_good) {
    shown.flags = roce::kTagMatch;  // for layers that tell an entry's completions from others
    return received_.complete(shown);
  }
  shown.flags |= roce::kTagDataValid;
  if (is_told_) return received_.complete(shown);
  shown.flags |= roce::kTagMatch;
  return received_.complete_match(shown, header_.tag);
}

void TagReceives::release() {
  {
    const std::lock_guard lock(list_.mutex);
    list_.release(entry_);
  }
  enter(Kind::kNoMessage);
}

void TagReceives::reset() {
  if (has_entry()) release();
  kind_ = Kind::kNoMessage;
  segments_ = nullptr;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/rendezvous.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>

namespace dapple::soft {

void Rendezvous::assert_consistent() const {
  assert(count_ <= kMaxRendezvous);
  assert(begun_ == kNone || slots_[begun_].is_used);
}

void Rendezvous::begin(const NewRendezvous& made) {
  assert(has_room() && begun_ == kNone);
  Slot* const free = std::find_if(slots_, slots_ + kMaxRendezvous, [](const Slot& slot) { return !slot.is_used; });
  assert(free != slots_ + kMaxRendezvous);
  *free = {.is_used = true,
           .has_end = true,
           .has_entry = true,
           .solicited = made.solicited,
           .entry = made.entry,
           .header = made.header,
           .end = {}};
  std::copy(made.bytes.begin(), made.bytes.end(), free->end);
  make_end_of_rendezvous(free->end);
  ++count_;
  begun_ = static_cast<uint32_t>(free - slots_);
  assert_consistent();
}

roce::SendRequest Rendezvous::read_of(uint32_t at, roce::Segment* room) const {
  const Slot& slot = slots_[at];
  roce::SendRequest request;
  request.id = at * kRequestsOfRendezvous;
  request.opcode = roce::SendOpcode::kRead;
  request.flags = roce::kSignaled;
  request.remote_address = slot.header.address;
  request.rkey = slot.header.rkey;
  request.segments = roce::first_bytes(list_.segments_of(slot.entry), slot.header.length, room);
  return request;
}

roce::Segment Rendezvous::end_segment(uint32_t at) const {
  return {reinterpret_cast<uintptr_t>(slots_[at].end), kRendezvousHeaderSize, 0};
}

// The sender may use its memory again when this arrives, so it waits for the Read.
roce::SendRequest Rendezvous::end_of(uint32_t at, const roce::Segment& copied) const {
  roce::SendRequest request;
  request.id = at * kRequestsOfRendezvous + 1;
  request.opcode = roce::SendOpcode::kSend;
  request.flags = roce::kSignaled | roce::kFence | roce::kInline;
  request.segments = {&copied, 1};
  return request;
}

void Rendezvous::fail(uint32_t at) {
  slots_[at].has_end = false;
  roce::Completion flushed;
  flushed.request_id = at * kRequestsOfRendezvous;
  flushed.status = roce::CompletionStatus::kFlushed;
  flushed.qpn = qpn_;
  complete(flushed);
}

bool Rendezvous::complete(const roce::Completion& completion) {
  const auto at = static_cast<uint32_t>(completion.request_id / kRequestsOfRendezvous);
  assert(at < kMaxRendezvous && slots_[at].is_used);
  Slot& slot = slots_[at];
  if (completion.request_id % kRequestsOfRendezvous == 0) return end_read(slot, completion);
  slot.has_end = false;
  leave(slot);
  return true;
}

bool Rendezvous::end_read(Slot& slot, const roce::Completion& completion) {
  roce::Completion shown = completion;
  shown.request_id = list_.id_of(slot.entry);
  shown.mark = list_.mark_of(slot.entry);
  shown.opcode = roce::CompletionOpcode::kTagReceive;
  shown.solicited = slot.solicited;
  shown.byte_count = slot.header.length;
  shown.flags = shown.status == roce::CompletionStatus::kSuccess ? roce::kTagDataValid : roce::kTagMatch;
  release(slot);
  leave(slot);
  return received_.complete(shown);
}

void Rendezvous::release(Slot& slot) {
  if (!slot.has_entry) return;
  const std::lock_guard lock(list_.mutex);
  list_.release(slot.entry);
  slot.has_entry = false;
}

void Rendezvous::leave(Slot& slot) {
  if (slot.has_entry || slot.has_end) return;
  slot.is_used = false;
  --count_;
  assert_consistent();
}

void Rendezvous::reset() {
  for (Slot& slot : slots_) {
    release(slot);
    slot = {};
  }
  count_ = 0;
  begun_ = kNone;
}

}  // namespace dapple::soft

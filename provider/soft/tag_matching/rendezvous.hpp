// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rendezvous of one queue pair: messages that have met their tags, and whose bytes the device reads from the
// senders' memory. After the Read it tells the sender, by a Send of the headers.
//
// These two requests are the only ones of the send queue, so this is the sink of its completions.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "provider/soft/tag_matching/tag_header.hpp"
#include "provider/soft/tag_matching/tag_list.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxRendezvous = 16;  // of a queue pair
inline constexpr uint32_t kRequestsOfRendezvous = 2;

// A message that has met its tag.
struct NewRendezvous {
  TagHeader header;
  std::span<const std::byte, kRendezvousHeaderSize> bytes;  // of the headers
  uint32_t entry = 0;
  bool solicited = false;
};

// Guarded by the queue pair's lock.
class Rendezvous final : public roce::CompletionSink {
 public:
  // `received`: the way of completions of messages.
  Rendezvous(TagList& list, roce::CompletionSink& received, uint32_t qpn)
      : list_(list), received_(received), qpn_(qpn) {}
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() override { reset(); }

  bool has_room() const { return count_ < kMaxRendezvous; }
  // The entry is the rendezvous' own until its last completion. post() follows.
  void begin(const NewRendezvous& made);
  bool has_begun() const { return begun_ != kNone; }
  // Posts the requests of the rendezvous that has begun, by post(request), which returns a roce::PostError. Without
  // success its message completes as flushed.
  template <typename Post>
  void post(Post post_one) {
    const uint32_t at = begun_;
    begun_ = kNone;
    roce::Segment room[kMaxTagSegments];
    roce::SendRequest request = read_of(at, room);
    if (post_one(request) != roce::PostError::kNone) return fail(at);
    const roce::Segment copied = end_segment(at);
    request = end_of(at, copied);
    if (post_one(request) != roce::PostError::kNone) slots_[at].has_end = false;
  }

  // The id of the receive for which a Read with this id is posted.
  uint64_t receive_of(uint64_t read) const { return list_.id_of(slots_[read / kRequestsOfRendezvous].entry); }
  // Of its own requests.
  bool complete(const roce::Completion& completion) override;
  // The queue pair is in RESET, or ends: no completion comes any more.
  void reset();

 private:
  struct Slot {
    bool is_used = false;
    bool has_end = false;    // the end is posted, and is not complete
    bool has_entry = false;  // until the Read is complete
    bool solicited = false;
    uint32_t entry = 0;
    TagHeader header;
    std::byte end[kRendezvousHeaderSize];
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  roce::SendRequest read_of(uint32_t at, roce::Segment* room) const;
  roce::Segment end_segment(uint32_t at) const;
  roce::SendRequest end_of(uint32_t at, const roce::Segment& copied) const;
  void fail(uint32_t at);
  bool end_read(Slot& slot, const roce::Completion& completion);
  void leave(Slot& slot);
  void release(Slot& slot);
  void assert_consistent() const;

  TagList& list_;
  roce::CompletionSink& received_;
  const uint32_t qpn_;
  uint32_t count_ = 0;
  uint32_t begun_ = kNone;
  Slot slots_[kMaxRendezvous];
};

}  // namespace dapple::soft

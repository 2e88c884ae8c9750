// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The receives of a queue pair whose shared receive queue matches tags, and their completions: a message takes the
// entry of its tag, or a receive of the queue.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "provider/soft/objects/queues/receive_queue.hpp"
#include "provider/soft/tag_matching/rendezvous.hpp"
#include "provider/soft/tag_matching/tag_header.hpp"
#include "provider/soft/tag_matching/tag_list.hpp"
#include "roce/host/ports.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

// Tells whether the queue pair can read from its peer's memory now, and how much.
class RendezvousLimits {
 public:
  virtual uint64_t most_to_read() const = 0;

 protected:
  ~RendezvousLimits() = default;
};

// Guarded by the queue pair's lock.
class TagReceives final : public roce::ReceiveSource, public roce::CompletionSink {
 public:
  // `received`: the way to the completion queue of the shared receive queue.
  TagReceives(TagList& list, ReceiveQueue& queue, Rendezvous& rendezvous, roce::CompletionSink& received, uint32_t qpn)
      : list_(list), queue_(queue), rendezvous_(rendezvous), received_(received), qpn_(qpn) {}
  TagReceives(const TagReceives&) = delete;
  TagReceives& operator=(const TagReceives&) = delete;
  ~TagReceives() override { reset(); }

  // The engine takes this packet now. False if the first bytes of a message cannot be fetched.
  bool look_at(const roce::Packet& packet);
  void looked() { packet_ = nullptr; }
  void limited_by(const RendezvousLimits& limits) { limits_ = &limits; }

  bool take(roce::ReceiveRequest& request) override;
  bool complete(const roce::Completion& completion) override;
  // Bytes at the beginning of the message in progress that have no memory. `segments`: where the engine would put the
  // message. 0 for other segments.
  uint32_t skipped(std::span<const roce::Segment> segments) const {
    return segments.data() == segments_ ? skipped_ : 0;
  }
  // The message in progress goes to an entry of the list.
  bool has_entry() const { return kind_ >= Kind::kEager; }
  // The queue pair is in RESET, or ends: a message in progress completes no more.
  void reset();

 private:
  enum class Kind : uint8_t {
    kNoMessage,
    kPlain,       // a Write with immediate data
    kNoTag,       // a message without a tag
    kUnexpected,  // it has met no entry
    kEager,       // it has met its entry
    kRendezvous,  // the same, and the device reads its bytes
    kIncomplete,  // the same, and the program must read them
  };
  static bool may_follow(Kind from, Kind to);
  void enter(Kind kind);

  bool take_of_queue(roce::ReceiveRequest& request, Kind kind);
  bool take_tagged(roce::ReceiveRequest& request);
  Kind kind_of_rendezvous(uint32_t entry) const;
  void fill(roce::ReceiveRequest& request, Kind kind, uint32_t entry);
  bool is_in_one_packet() const;
  void tell_match(uint64_t id);
  void release();
  bool complete_tagged(roce::Completion shown);

  TagList& list_;
  ReceiveQueue& queue_;
  Rendezvous& rendezvous_;
  roce::CompletionSink& received_;
  const uint32_t qpn_;
  const RendezvousLimits* limits_ = nullptr;

  const roce::Packet* packet_ = nullptr;  // null: the engine takes none
  std::byte head_[kRendezvousHeaderSize] = {};
  size_t head_size_ = 0;

  // The message in progress.
  Kind kind_ = Kind::kNoMessage;
  bool is_told_ = false;  // the program has a completion of the match
  TagHeader header_;
  uint32_t entry_ = 0;
  uint32_t skipped_ = 0;
  const roce::Segment* segments_ = nullptr;
};

}  // namespace dapple::soft

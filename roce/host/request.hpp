// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The work that an application gives to a queue pair, and its results. Numbers equal those of libibverbs where a name
// has one there; the provider asserts it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dapple::roce {

inline constexpr uint32_t kMaxSegments = 32;

// Memory of this process, named by a local key. A host may look at its own type of the same layout through this one.
struct [[gnu::may_alias]] Segment {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
};

inline uint64_t length_of(std::span<const Segment> segments) {
  uint64_t length = 0;
  for (const Segment& segment : segments) length += segment.length;
  return length;
}

// The segments of the first `length` bytes, which the list must hold, in `room` for as many segments as it has.
inline std::span<const Segment> first_bytes(std::span<const Segment> segments, uint64_t length, Segment* room) {
  size_t count = 0;
  for (; length > 0; ++count) {
    assert(count < segments.size());
    room[count] = segments[count];
    if (room[count].length > length) room[count].length = static_cast<uint32_t>(length);
    length -= room[count].length;
  }
  return {room, count};
}

// Lists are short: a call of memmove() would take longer.
inline void copy_segments(std::span<const Segment> from, Segment* to) {
  for (const Segment& segment : from) *to++ = segment;
}

// A datagram's destination: a copy of the application's address handle, so that the handle may be destroyed at once.
struct AddressVector {
  uint8_t destination_gid[16] = {};
  uint32_t flow_label = 0;
  uint8_t source_gid_index = 0;
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  // Of another protection domain than the queue pair's: the datagram completes with kLocalQpOperation in its turn.
  bool is_foreign = false;
};

enum class SendOpcode : uint8_t {
  kWrite = 0,
  kWriteImmediate = 1,
  kSend = 2,
  kSendImmediate = 3,
  kRead = 4,
  kCompareSwap = 5,
  kFetchAdd = 6,
  kLocalInvalidate = 7,
  kBindWindow = 8,
  kSendInvalidate = 9,
  kFlush = 14,
  kAtomicWrite = 15,
};

// kIpChecksum is for raw packets; others ignore it.
enum SendFlag : uint8_t { kFence = 1, kSignaled = 2, kSolicited = 4, kInline = 8, kIpChecksum = 16 };

// A bind of a memory window of type 2, or of type 1 by the verb that posts for it.
struct WindowBind {
  uint32_t window_rkey = 0;  // the key that the window has now (type 1), or had
  uint32_t new_rkey = 0;
  uint32_t region_lkey = 0;
  uint32_t access = 0;  // Access bits
  uint64_t address = 0;
  uint64_t length = 0;
};

// The segments and inline bytes are copied when it is posted.
struct SendRequest {
  uint64_t id = 0;
  SendOpcode opcode = SendOpcode::kSend;
  uint8_t flags = 0;  // SendFlag
  uint16_t mark = 0;  // the host's own; the completion has it, too
  // In network byte order; for kSendInvalidate and kLocalInvalidate the key, in the host's.
  uint32_t immediate_or_rkey = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint64_t compare_or_add = 0;
  uint64_t swap = 0;
  uint32_t flush_length = 0;
  uint32_t flush_type = 0;    // FETH, as in Headers::flush
  uint64_t atomic_write = 0;  // eight bytes, as they lie in memory
  WindowBind bind = {};
  AddressVector address = {};  // UD
  union {
    uint32_t remote_qpn = 0;  // UD
    uint32_t remote_srq;      // XRC
  };
  uint32_t remote_qkey = 0;  // UD
  // With kInline the addresses are read when it is posted, and keys are ignored.
  std::span<const Segment> segments = {};
};

// A Send without a fence. Most requests are such Sends.
struct PlainSend {
  uint64_t id = 0;
  uint8_t flags = 0;
  std::span<const Segment> segments;
};

// Its segments are in the room of the one who keeps it: for as many as its queue allows. An assignment copies them
// there.
struct ReceiveRequest {
  ReceiveRequest() = default;
  ReceiveRequest(const ReceiveRequest&) = delete;
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): an assignment to itself changes nothing.
  ReceiveRequest& operator=(const ReceiveRequest& from) {
    id = from.id;
    segment_count = from.segment_count;
    mark = from.mark;
    copy_segments({from.segments, from.segment_count}, segments);
    return *this;
  }

  uint64_t id = 0;
  uint32_t segment_count = 0;
  uint16_t mark = 0;  // as in SendRequest
  Segment* segments = nullptr;
};

// One with room of its own.
struct WholeReceiveRequest : ReceiveRequest {
  WholeReceiveRequest() { segments = room; }
  WholeReceiveRequest(const WholeReceiveRequest& from) : WholeReceiveRequest() { *this = from; }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): as above.
  WholeReceiveRequest& operator=(const WholeReceiveRequest& from) {
    ReceiveRequest::operator=(from);
    return *this;
  }

  Segment room[kMaxSegments];
};

enum class CompletionStatus : uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQpOperation = 2,
  kLocalProtection = 4,
  kFlushed = 5,
  kWindowBind = 6,
  kBadResponse = 7,
  kLocalAccess = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
  kTagError = 22,              // a tag cannot be taken out of its list
  kRendezvousIncomplete = 23,  // the program must read the message that matched
};

enum class CompletionOpcode : uint8_t {
  kSend = 0,
  kWrite = 1,
  kRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kBindWindow = 5,
  kLocalInvalidate = 6,
  kFlush = 8,
  kAtomicWrite = 9,
  kReceive = 128,
  kReceiveWriteImmediate = 129,
  // Tag matching: three operations on a list, and two kinds of messages.
  kTagAdd = 130,
  kTagDelete = 131,
  kTagSync = 132,
  kTagReceive = 133,
  kReceiveNoTag = 134,
};

enum CompletionFlag : uint8_t {
  kWithGrh = 1,
  kWithImmediate = 2,
  kIpChecksumGood = 4,
  kWithInvalidate = 8,
  kTagSyncWanted = 16,  // the program has not told of all unexpected messages
  kTagMatch = 32,       // a message has met its tag
  kTagDataValid = 64,   // all bytes of that message are here
};

// The tag of a message that has met an entry of a list.
struct MatchedTag {
  uint64_t tag = 0;
  uint32_t application = 0;  // the sender's program has put it beside the tag
};

struct Completion {
  uint64_t request_id = 0;
  CompletionStatus status = CompletionStatus::kSuccess;
  CompletionOpcode opcode = CompletionOpcode::kSend;
  uint8_t flags = 0;       // CompletionFlag
  bool solicited = false;  // wakes a program that waits for solicited events only; errors always do
  uint32_t byte_count = 0;
  uint32_t immediate_or_rkey = 0;
  uint32_t qpn = 0;
  uint32_t source_qpn = 0;
  uint8_t ip_version = 0;  // IBTA A17.4.5.1: 4 or 6 for a received datagram, if its packet came with an IP header
  uint16_t mark = 0;       // of the request
};

}  // namespace dapple::roce

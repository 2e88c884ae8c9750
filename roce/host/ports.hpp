// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The engine's ports: everything outside of the protocol that a queue pair needs. A host implements them: the provider
// with locks and real memory, the simulator and the fuzzers with their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "roce/host/clock.hpp"
#include "roce/host/request.hpp"

namespace dapple::roce {

// The numbers are libibverbs' (enum ibv_access_flags).
enum Access : uint32_t {
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
  kWindowBind = 16,
  kZeroBased = 32,
  kFlushGlobal = 256,
  kFlushPersistent = 512,
};

// The rights that the type of a FETH needs. IBTA A19: placement bit 0 is global visibility, bit 1 persistence.
constexpr uint32_t flush_rights(uint32_t type) {
  return ((type & 1) != 0 ? uint32_t{kFlushGlobal} : 0) | ((type & 2) != 0 ? uint32_t{kFlushPersistent} : 0);
}

// Its selectivity: the whole region instead of the range.
constexpr bool flushes_whole_region(uint32_t type) {
  return (type & 1 << 4) != 0;
}

// The accessing queue pair: keys are valid for one protection domain, windows of type 2 for one queue pair.
struct Accessor {
  uint32_t domain = 0;
  uint32_t qpn = 0;
};

struct RemoteRange {
  uint32_t rkey = 0;
  uint64_t address = 0;
  uint64_t length = 0;
};

enum class Fault : uint8_t {
  kNone,
  kAccess,     // key, domain, bounds or rights
  kUnaligned,  // an atomic whose address is not a multiple of eight
  kFailed,     // the key is valid, but the memory cannot be reached
  kLater,      // the memory's owner does not answer now: as if the packet had not come (XRC between processes)
};

// Bytes that a packet stands for and does not carry: they are still in its sender's memory. Valid during the call that
// passes the packet.
class Loan {
 public:
  Loan(uint64_t length, uint32_t packets) : length_(length), packets_(packets) {}

  uint64_t length() const { return length_; }
  // The packets that would have carried them. The packet has all their PSNs.
  uint32_t packets() const { return packets_; }
  // Fetches `size` bytes from `offset`. False if they cannot be reached any more.
  virtual bool copy(uint64_t offset, std::byte* to, size_t size) const = 0;

 protected:
  ~Loan() = default;

 private:
  const uint64_t length_;
  const uint32_t packets_;
};

// Memory by its keys. Every call checks the key again, because a region may disappear between two packets of a message.
// No call keeps a pointer into it. An access of length 0 succeeds with any key (IBTA 9.7.4.1.3).
class Memory {
 public:
  virtual Fault check_remote(Accessor who, const RemoteRange& range, uint32_t access) = 0;
  // Needs kRemoteWrite. The last eight bytes become visible last.
  virtual Fault write(Accessor who, const RemoteRange& range, const std::byte* from) = 0;
  virtual Fault read(Accessor who, const RemoteRange& range, std::byte* to) = 0;
  // Atomic for all observers, with the host's byte order; original is the old value.
  virtual Fault compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                             uint64_t& original) = 0;
  virtual Fault fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) = 0;
  // Writes eight bytes atomically, in memory order. Needs kRemoteWrite.
  virtual Fault atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) = 0;
  // type: from the FETH. Flushes the whole region if the FETH's selectivity requests it.
  virtual Fault flush(Accessor who, const RemoteRange& range, uint32_t type) = 0;

  // Tells whether all of these exist, with kLocalWrite if `write`.
  virtual Fault check_local(Accessor who, std::span<const Segment> segments, bool write) = 0;
  // Copies `size` bytes from `offset` in the segments, which hold that many.
  virtual Fault gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to,
                       size_t size) = 0;
  virtual Fault scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                        size_t size) = 0;

  // The same for the bytes of a loan. kFailed if the bytes cannot be fetched: then packets must bring them.
  virtual Fault scatter_loan(Accessor, std::span<const Segment>, uint64_t /*offset*/, const Loan&) {
    return Fault::kFailed;
  }

  virtual Fault bind_window(Accessor who, const WindowBind& bind) = 0;
  virtual Fault invalidate_local(Accessor who, uint32_t rkey) = 0;
  virtual Fault invalidate_remote(Accessor who, uint32_t rkey) = 0;

 protected:
  ~Memory() = default;
};

// Takes completions. False if a completion is lost, because the host has no room for it. The host keeps the others and
// reports the loss to its application by an asynchronous event. A reliable connection ends with a receive that is lost.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual bool complete(const Completion& completion) = 0;
  // The same of a message that has met its tag. Hosts that match no tags get no such completions.
  virtual bool complete_match(const Completion& completion, const MatchedTag&) { return complete(completion); }
};

// A receive queue, of one queue pair or shared; the host handles the limit event of a shared queue.
class ReceiveSource {
 public:
  // False if there is none. The queue pair owns the receive that it takes.
  virtual bool take(ReceiveRequest& request) = 0;
  // Of an extended reliable connection: the shared receive queue with this number gives the next receive, and memory is
  // used in the protection domain of that queue. False if the peer may not use such a queue.
  virtual bool select(uint32_t /*srq*/, uint32_t& /*domain*/) { return false; }

 protected:
  ~ReceiveSource() = default;
};

// The numbers are libibverbs' (enum ibv_event_type).
enum class QpEvent : uint8_t {
  kFatal = 1,
  kRequestError = 2,
  kAccessError = 3,
  kEstablished = 4,
  kSendQueueDrained = 5,
  kLastRequestReached = 16,
};

// A message that a queue pair drops without a word to its sender (UC, UD).
struct DroppedMessage {
  enum class Reason : uint8_t {
    kState,
    kQkey,
    kTooLong,
    kNoReceive,
    kSmallReceive,
    kMtu,
    kStranger,
    kOtherAddress,
    kLost,
    kOther
  };
  Reason reason = Reason::kOther;
  uint64_t found = 0;   // the message's Q_Key, its bytes, or those of its packets
  uint64_t wanted = 0;  // the queue pair's Q_Key, its room for bytes, or its path MTU
  uint32_t source_qpn = 0;
  // The GID of the sender (kStranger), or the one that the message is for (kOtherAddress).
  const uint8_t* address = nullptr;
};

class EventSink {
 public:
  virtual void event(QpEvent event, uint32_t qpn) = 0;
  // A peer's request is refused: the queue pair lacks one of these rights (Access), or its max_dest_rd_atomic is 0.
  virtual void refused(uint32_t /*access*/) {}
  // The same for its key, its bytes, or their rights: it needs these. A length of 0 stands for the whole region.
  virtual void denied(const RemoteRange&, uint32_t /*rights*/) {}
  // A peer's message is here, and the key that came with it cannot be invalidated.
  virtual void cannot_invalidate(uint32_t /*rkey*/) {}
  // This request, or this receive, is about to complete with an error other than a flush.
  virtual void send_fails(const SendRequest&, CompletionStatus) {}
  virtual void receive_fails(const ReceiveRequest&, CompletionStatus) {}
  // The same of a receive whose bytes the host reads by this request, which has the receive's id.
  virtual void read_fails(const SendRequest&, CompletionStatus) {}
  virtual void dropped(const DroppedMessage&) {}
  // A peer's message has found no receive: an RNR NAK lets it come again later.
  virtual void not_ready() {}
  // Requests are about to complete with an error, although the peer may still fetch their bytes, or write to memory.
  virtual void sends_fail() {}

 protected:
  ~EventSink() = default;
};

// Learns of each request that ends, with or without a completion. For counters.
class RequestObserver {
 public:
  // A request of the send queue, with the bytes of its message.
  virtual void sent(SendOpcode opcode, uint64_t bytes, CompletionStatus status) = 0;
  virtual void received(uint64_t bytes, CompletionStatus status) = 0;
  // The peer's RDMA Read or Write was executed, or refused: then the bytes are 0.
  virtual void executed(bool is_read, uint64_t bytes, bool is_refused) = 0;

 protected:
  ~RequestObserver() = default;
};

// An RDMA Write or Read as a whole.
struct Transfer {
  Accessor who;
  bool is_read = false;
  RemoteRange range;
  std::span<const Segment> segments;
  const std::byte* inline_bytes = nullptr;  // of a Write, instead of the segments
};

// A part of a Send whose bytes the peer may fetch.
struct Reference {
  Accessor who;
  std::span<const Segment> segments;
  uint64_t offset = 0;  // in the segments
  uint64_t length = 0;
  uint32_t packets = 0;  // that would carry them
};

enum class Placed : uint8_t {
  kNo,    // it goes as packets, all of it
  kPart,  // a part is copied, and the sink takes no more now
  kWhole,
};

// A queue pair writes its packets to it.
class PacketSink {
 public:
  // False if the sink is lossless: every committed packet arrives unless the peer ends. The peer's packets may use
  // another transport.
  bool may_lose_packets() const { return may_lose_packets_; }
  // Room for a packet's headers, payload and pad, or nullptr if the sink takes no more now. One at a time.
  virtual std::byte* reserve(size_t size) = 0;
  // The packet in the room of the last reserve() is complete. `to` is null except for UD.
  virtual void commit(const AddressVector* to) = 0;
  // Room for the headers of one packet of a reliable connection that brings a Loan to the peer instead of bytes, or
  // nullptr if the peer cannot fetch them, or the sink takes no more now. commit() follows. The sender keeps the bytes
  // until the peer has acknowledged the packet, or the requests fail.
  virtual std::byte* refer(const Reference&, size_t /*headers*/) { return nullptr; }
  // Offers a request of a reliable connection whose peer has executed everything before it. A sink that reaches the
  // peer's memory may copy the bytes itself, after all checks that the peer would make. `done` counts the bytes that
  // this call and earlier ones for the request have copied.
  virtual Placed place(const Transfer&, uint64_t& done) {
    done = 0;
    return Placed::kNo;
  }
  // Tells whether place() would probably copy this one.
  virtual bool would_place(const Transfer&) { return false; }

 protected:
  explicit PacketSink(bool may_lose_packets = true) : may_lose_packets_(may_lose_packets) {}
  ~PacketSink() = default;

 private:
  const bool may_lose_packets_;
};

}  // namespace dapple::roce

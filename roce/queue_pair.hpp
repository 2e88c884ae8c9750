// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One queue pair: RC, UC, UD, or an end of XRC. The host hands in requests, packets and the time, and pulls out packets
// and the next deadline.
//
// No thread, lock, clock or system call inside: the host calls one function of a queue pair at a time. Memory is
// allocated by create() and by modify() to RTR, RTS and SQD, never later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "roce/packet/packet.hpp"
#include "roce/ports.hpp"
#include "roce/request.hpp"

namespace dapple::roce {

// The numbers of both are libibverbs'.
// An extended reliable connection (IBTA A14) goes one way: from a kXrcSend, which has no responder, to a kXrcReceive,
// which has no requester.
// A raw packet queue pair has Ethernet frames instead of RoCE packets, so its engine is the host's own: a Core of this
// type. create() makes none.
enum class QpType : uint8_t { kRc = 2, kUc = 3, kUd = 4, kRawPacket = 8, kXrcSend = 9, kXrcReceive = 10 };
constexpr bool is_reliable(QpType type) {
  return type == QpType::kRc || type == QpType::kXrcSend || type == QpType::kXrcReceive;
}
enum class QpState : uint8_t { kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kSqd = 4, kSqe = 5, kError = 6 };

class SendMemory;

struct QpConfig {
  uint32_t qpn = 0;
  QpType type = QpType::kRc;
  uint32_t domain = 0;  // the protection domain's number
  // That of the memory of receives, if it is another one: a shared receive queue has a domain of its own.
  std::optional<uint32_t> receive_domain = std::nullopt;
  uint32_t send_depth = 0;
  uint32_t max_send_segments = 1;
  uint32_t max_inline = 0;  // bytes
  uint32_t max_receive_segments = kMaxSegments;
  bool signal_all = false;
  bool shared_receives = false;  // of a shared receive queue: not flushed with this queue pair
  uint32_t datagram_mtu = 1024;  // UD: the largest payload, which the port decides
  // The longest message, at least 4,096 bytes. IBTA 9.4.3 and 9.3.2.3: not more than 2^31. The post of a longer one
  // fails, or its request completes with kLocalLength in its turn.
  uint64_t max_message = uint64_t{1} << 31;
  bool refuses_too_long = true;
  bool has_atomics = true;
  bool has_flush = true;  // and atomic writes
  // The send queue lives there; null: in memory of its own. It lives longer than the queue pair.
  SendMemory* send_memory = nullptr;
};

// Like struct ibv_qp_attr, without the path: the host has the addresses.
struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  bool draining = false;  // only in answers: the queue pair is in SQD, and requests are under way
  bool notify_drained = false;
  uint32_t access = 0;  // Access bits that peers have
  uint32_t qkey = 0;
  uint32_t path_mtu = 1024;  // bytes of payload: 256, 512, 1024, 2048 or 4096
  uint8_t timeout = 0;       // 4.096 us * 2^timeout; 0 waits for ever
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;      // 7 retries for ever
  uint8_t min_rnr_timer = 0;  // the code of IBTA table 46
  uint32_t receive_psn = 0;
  uint32_t send_psn = 0;
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint32_t destination_qpn = 0;
};

// libibverbs' bits (enum ibv_qp_attr_mask).
enum QpAttributeBit : uint32_t {
  kState = 1 << 0,
  kCurrentState = 1 << 1,
  kNotifyDrained = 1 << 2,
  kAccessFlags = 1 << 3,
  kPkeyIndex = 1 << 4,
  kPort = 1 << 5,
  kQkey = 1 << 6,
  kAddress = 1 << 7,
  kPathMtu = 1 << 8,
  kTimeout = 1 << 9,
  kRetryCount = 1 << 10,
  kRnrRetry = 1 << 11,
  kReceivePsn = 1 << 12,
  kMaxRdAtomic = 1 << 13,
  kAlternatePath = 1 << 14,
  kMinRnrTimer = 1 << 15,
  kSendPsn = 1 << 16,
  kMaxDestRdAtomic = 1 << 17,
  kPathMigration = 1 << 18,
  kCapabilities = 1 << 19,
  kDestinationQpn = 1 << 20,
};

enum class PostError : uint8_t { kNone, kState, kFull, kSegments, kOpcode, kLength };

struct QpCounters {
  uint64_t sequence_naks_sent = 0;
  uint64_t rnr_naks_sent = 0;
  uint64_t duplicates = 0;
  uint64_t timeouts = 0;
  uint64_t retransmitted_packets = 0;
  uint64_t dropped_packets = 0;  // wrong opcode, state or place

  bool operator==(const QpCounters&) const = default;
};

// The packets that are due to the peer.
enum class Owes : uint8_t {
  kNothing,
  kLaterAcknowledgement,  // the peer does not wait for it
  kAcknowledgement,
  kMore,
};

class ReliableConnection;

class QueuePair {
 public:
  // Null if there is no memory for it. The ports outlive it. `receives` may be any source if nothing is ever received.
  static std::unique_ptr<QueuePair> create(const QpConfig& config, Memory& memory, CompletionSink& send_completions,
                                           CompletionSink& receive_completions, ReceiveSource& receives,
                                           EventSink& events);
  virtual ~QueuePair() = default;
  // The queue pair, if it is a reliable connection and nothing is between: plain Sends have a short way there
  // (at_once.hpp). Null otherwise.
  virtual ReliableConnection* reliable_connection() { return nullptr; }

  // IBTA 11.2.5.2 and tables 91 to 94: false if this transition or an attribute is refused, or no memory is available;
  // then nothing has changed. The host has checked kPkeyIndex, kPort and kAddress, and passes their bits so that
  // required attributes are found. A transition to kError flushes queued requests; a transition to kReset drops them.
  virtual bool modify(const QpAttributes& attributes, uint32_t mask) = 0;
  // The PSNs are those of the next packets.
  virtual QpAttributes attributes() const = 0;
  QpState state() const { return state_; }

  virtual PostError post_send(const SendRequest& request) = 0;
  // The result that post_send() would return after `ahead` accepted requests, without another call in between.
  virtual PostError check_send(const SendRequest& request, uint32_t ahead) const = 0;
  // Completes the receives in `receives` as flushed if the queue pair is in error. Call it after each post to
  // `receives`, and at no other time.
  virtual void receives_posted() = 0;

  // Takes a packet for this queue pair, from its peer (RC, UC). The host has checked ICRC and addresses.
  virtual void receive(Now now, const Packet& packet) = 0;

  // Takes a packet with kHostOpcode from its peer. It concerns layers around an engine alone.
  virtual void receive_for_host(const Packet& /*packet*/) {}

  // Writes packets until nothing may be sent now, or the sink is full. True if it stopped because of the sink.
  virtual bool transmit(Now now, PacketSink& sink) = 0;
  // Tells what transmit() has to send. The host may keep an acknowledgement back for a moment, so that it goes with
  // requests.
  virtual Owes owes() const = 0;

  // The latest time for a call of expire(); kNever if none is needed. It changes with each call of another function.
  virtual Time deadline() const = 0;
  virtual void expire(Now now) = 0;

  // From now on the observer, which outlives the queue pair, learns of requests that end. Call it in RESET or INIT.
  virtual void observed_by(RequestObserver& observer) = 0;

  virtual const QpCounters& counters() const = 0;
  // Requests that were posted and are not complete.
  virtual uint64_t outstanding_sends() const = 0;
  // The oldest of them. Its segments are valid until the next call of another function.
  virtual std::optional<SendRequest> oldest_send() const { return std::nullopt; }

 protected:
  QpState state_ = QpState::kReset;
};

}  // namespace dapple::roce

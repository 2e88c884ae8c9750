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

#include "roce/host/ports.hpp"
#include "roce/host/qp_attributes.hpp"
#include "roce/host/request.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::roce {

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

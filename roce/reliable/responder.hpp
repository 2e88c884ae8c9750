// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The responder of a reliable connection (IBTA 9.7.4 and 9.7.5): an ordered list of checks, then execution, then the
// acknowledgement or response.
#pragma once

#include <cstdint>
#include <memory>

#include "roce/core/core.hpp"
#include "roce/core/inbound.hpp"
#include "roce/core/syndrome.hpp"
#include "roce/packet/psn.hpp"

namespace dapple::roce {

class Responder {
 public:
  explicit Responder(Core& core) : core_(core), inbound_(core) {}

  // Memory for `max_dest_rd_atomic` requests that are answered with data.
  bool prepare(uint8_t max_dest_rd_atomic);
  // The same later. Remembered requests stay.
  bool make_room(uint8_t max_dest_rd_atomic);
  // RTR: begins with the attributes' receive PSN.
  void start();
  void stop();

  void receive(const Packet& packet);
  template <typename MemoryType, typename Receives, typename Completions>
  bool receive_at_once(const PlainPacket& packet, MemoryType& memory, Receives& receives, Completions& completions);
  // Sends responses, and the NAK behind them. True if the sink is full.
  bool transmit_responses(PacketSink& sink);
  // Sends the newest acknowledgement, or the NAK. True if the sink is full. Both functions also work in the error
  // state, for the NAK with the reason.
  bool transmit_acknowledgement(PacketSink& sink);
  // The acknowledgement that is due, and that another packet can take along: then call was_acknowledged().
  Acknowledgement acknowledgement() const { return {reply_psn_, syndrome_}; }
  void was_acknowledged();
  // Tells what these functions have to send.
  Owes owes() const;
  uint32_t expected_psn() const { return expected_psn_; }

 private:
  // The memory of an RDMA Read or an atomic, so that a duplicate is answered as the first was.
  struct Resource {
    Operation operation{};
    uint32_t first_psn = 0;
    uint32_t packets = 0;
    uint32_t domain = 0;  // of the memory
    uint32_t rkey = 0;
    uint64_t address = 0;
    uint64_t length = 0;
    uint64_t original = 0;   // an atomic's result
    bool continues = false;  // a Read, of which the next request asks for more
    uint32_t msn = 0;
    uint32_t answered = 0;  // packets of the response that have been sent, in any pass
    // The rest of the present response: packets next to end, of which the first has the number `begin`.
    uint32_t begin = 0;
    uint32_t next = 0;
    uint32_t end = 0;

    bool pending() const { return next < end; }
    bool consistent() const { return begin <= next && next <= end && end <= packets && answered <= packets; }
  };

  void take(const Packet& packet);
  void on_new(const Packet& packet);
  void on_data(const Packet& packet);
  void on_other(const Packet& packet);
  bool select_receives(uint32_t srq);
  // The next packet, or a loan that stands for some, has been executed.
  void executed(uint32_t packets, bool ends, bool is_asked);
  void on_duplicate(const Packet& packet);
  void on_request_with_response(const Packet& packet);
  InboundError execute_with_response(const Packet& packet, Resource& resource);
  void refuse(const Packet& packet, InboundError error);
  void lose_completion();
  void tell_refusal(const Packet& packet) const;
  void ask_again();
  void fatal_nak(NakCode code);
  void end_silently();
  Resource& resource(uint64_t number) { return resources_[number % room_]; }
  Resource* find(uint32_t psn);
  bool duplicate_read(const Packet& packet, Resource& old);
  bool send_response(Resource& resource, PacketSink& sink);
  void tell_observer_of_read(const Resource& answered);
  bool send_acknowledgement(PacketSink& sink);
  bool answers() const { return core_.state() != QpState::kError || answers_in_error_; }

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  enum class Reply : uint8_t { kNone, kAck, kNak };

  // The peer gets an acknowledgement of that many messages, even if it asks for none.
  static constexpr uint32_t kMaxUnacknowledged = 16;

  Core& core_;
  Inbound inbound_;
  uint32_t expected_psn_ = 0;
  uint32_t msn_ = 0;
  uint32_t srq_ = 0;             // XRC: the selected shared receive queue
  uint32_t unacknowledged_ = 0;  // messages since the last acknowledgement
  uint64_t read_bytes_ = 0;      // with an observer: those answered of a Read that continues
  bool gap_ = false;             // a NAK was sent for expected_psn_; no further one until that packet comes
  bool established_ = false;
  bool answers_in_error_ = false;  // a refused request brought the error state: the requests before it are answered

  std::unique_ptr<Resource[]> resources_;
  uint32_t room_ = 0;
  // Numbers count up. 32 bits would wrap within hours, and the place of a number, its remainder, would jump then.
  uint64_t oldest_ = 0;
  uint64_t newest_ = 0;  // one after the newest

  Reply reply_ = Reply::kNone;
  bool is_urgent_ = false;  // the peer has asked for reply_
  uint8_t syndrome_ = kAckSyndrome;
  uint32_t reply_psn_ = 0;
};

inline Owes Responder::owes() const {
  if (reply_ == Reply::kNak) return Owes::kMore;
  for (uint64_t number = oldest_; number != newest_ && answers(); number++) {
    if (resources_[number % room_].pending()) return Owes::kMore;
  }
  if (reply_ == Reply::kNone) return Owes::kNothing;
  return is_urgent_ ? Owes::kAcknowledgement : Owes::kLaterAcknowledgement;
}

inline void Responder::executed(uint32_t packets, bool ends, bool is_asked) {
  expected_psn_ = psn_add(expected_psn_, packets);
  // A refusal that waited for this packet is void.
  if (reply_ == Reply::kNak) reply_ = Reply::kNone;
  if (ends) msn_ = psn_add(msn_, 1);
  if (ends) unacknowledged_++;
  is_urgent_ = is_urgent_ || is_asked || unacknowledged_ >= kMaxUnacknowledged;
  if (reply_ == Reply::kNone && !ends && !is_urgent_) return;
  reply_ = Reply::kAck;
  syndrome_ = kAckSyndrome;
  reply_psn_ = psn_add(expected_psn_, -1);
}

}  // namespace dapple::roce

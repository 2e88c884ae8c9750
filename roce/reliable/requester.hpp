// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requester of a reliable connection (IBTA 9.7.2 to 9.7.5): turns requests into packets, takes acknowledgements and
// responses, retries.
//
// A started request owns a range of PSNs. The cursor is the next packet to send. A retry moves the cursor back, and
// everything from there on is sent again (go back N). The requester divides a long RDMA Read into chunks at fixed
// places, so that the responder's packets also fit into the window. A retry asks for the rest of one chunk, so it lies
// within the request that the responder remembers.
#pragma once

#include <cstdint>

#include "roce/core/core.hpp"
#include "roce/reliable/chunk_ends.hpp"
#include "roce/reliable/retry_timer.hpp"
#include "roce/reliable/window.hpp"

namespace dapple::roce {

class Requester {
 public:
  explicit Requester(Core& core) : core_(core) {}

  // Memory for `max_rd_atomic` requests that wait for a response. Those that wait now stay.
  bool make_room(uint8_t max_rd_atomic) { return chunk_ends_.make_room(max_rd_atomic); }
  // RTR to RTS: begins with the attributes' send PSN.
  void start();
  // Forgets everything: the send queue is empty.
  void stop();

  // An acknowledgement, an RDMA Read's or an atomic's response.
  void receive(Now now, const Packet& packet);
  // The same for an acknowledgement that comes with a packet.
  void take_acknowledgement(Now now, const Acknowledgement& acknowledgement);
  bool transmit(Now now, PacketSink& sink);
  // True if a new request has nothing to wait for.
  bool may_send_at_once(bool may_lose_packets);
  // False: it is not posted, because it is not valid, needs more packets, or the sink is full.
  template <typename Sink, typename MemoryType>
  bool send_at_once(Now now, const PlainSend& request, Sink& sink, MemoryType& memory);
  // True if requests can be sent now, or when the window or a timer allows it.
  bool has_requests_to_send() const { return cursor_ < core_.sends.tail(); }
  Time deadline() const;
  void expire(Now now);

  // SQD: requests that have not begun stay queued; the others are finished.
  void drain();
  void resume();
  void check_drained();
  bool draining() const { return draining_ && !drained_; }
  // The PSN of the next packet that is new.
  uint32_t next_new_psn() const { return highest_psn_; }

 private:
  // The next step for the entry at the cursor: send a packet of it, nothing now, look at the cursor again, or end the
  // turn because the sink is full.
  enum class Step : uint8_t { kSend, kWait, kAgain, kFull };
  Step step_cursor(SendEntry& entry, PacketSink& sink);
  Step step_local(SendEntry& entry);
  bool is_too_long(const SendEntry& entry) const {
    return entry.length > core_.config.max_message && entry.opcode != SendOpcode::kFlush;
  }
  // kWait: not yet, kSend: as packets.
  Step step_placement(SendEntry& entry, PacketSink& sink);
  bool start_entry(SendEntry& entry);
  bool wants_acknowledgement(uint8_t flags) const;
  void take_timeout();
  bool window_allows(const SendEntry& entry) const;
  bool waits_for_part() const;
  // These are false if the sink is full.
  bool send_data(SendEntry& entry, PacketSink& sink);
  bool send_request(SendEntry& entry, PacketSink& sink);
  // False if packets must carry the bytes.
  bool send_reference(SendEntry& entry, PacketSink& sink);
  void sent(SendEntry& entry, uint32_t end);
  // One after the last packet of the response that a request at the cursor asks for.
  uint32_t chunk_end(const SendEntry& entry) const;

  // The PSN of the next packet to send.
  uint32_t cursor_psn() const;
  // Packets with bytes, as far as the window counts them, and the most of them.
  uint32_t in_flight() const;
  void set_most_in_flight(bool may_lose_packets);
  void move_cursor(uint32_t psn);

  void fail(SendEntry& entry, CompletionStatus status);
  // Finishes entries at the head: local operations, and the failed entry when it is first.
  void settle();
  // Everything up to `psn` has arrived. False if data of a response is missing before that.
  bool acknowledge(Now now, uint32_t psn);
  void on_acknowledgement(Now now, uint32_t psn, uint8_t syndrome);
  void on_nak(Now now, uint8_t syndrome);
  void on_response(Now now, const Packet& packet);
  SendEntry* oldest_wanting_response();
  // Sends again from `psn` on, because of a hint that packets were lost. One retry for each place.
  void retry_lost(Now now, uint32_t psn);
  void set_timer(Now now);
  // True if packets were sent and are not acknowledged.
  bool outstanding() const { return oldest_psn_ != highest_psn_; }
  // Tells whether the packet with this PSN was sent and not acknowledged before.
  bool awaits(uint32_t psn) const;

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  Core& core_;
  CongestionWindow window_;
  uint32_t most_in_flight_ = 0;  // in this turn
  uint32_t part_ = 1;            // packets: long messages are sent and acknowledged in parts
  uint64_t cursor_ = 0;          // number of the entry
  uint32_t cursor_packet_ = 0;   // within it
  uint32_t next_psn_ = 0;        // of the next entry that is started
  uint32_t oldest_psn_ = 0;      // not acknowledged
  uint32_t highest_psn_ = 0;     // one after the highest that was ever sent
  uint32_t reference_end_ = 0;   // one after the last packet with a reference, or oldest_psn_
  uint64_t after_others_ = 0;    // number of the entry behind the last started one that is neither Write nor Read
  bool short_timer_ = false;     // each request asks for an acknowledgement then
  uint32_t unasked_ = 0;         // packets since the last one that asks for an acknowledgement
  bool refers_ = true;           // the peer has fetched all bytes that it should
  bool message_ended_ = false;   // by an acknowledgement, and no packet has been sent since

  ChunkEnds chunk_ends_;
  uint32_t chunk_ = 1;  // packets of the response that one request of an RDMA Read asks for

  uint64_t placed_ = 0;  // bytes of the oldest request that the sink has copied; it is not started then

  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool lost_seen_ = false;  // a retry from oldest_psn_ has been made for a hint; only the timer makes another
  RetryTimer timer_;
  bool draining_ = false;
  bool drained_ = false;    // the drain has ended, and its event was raised if wanted
  uint64_t drain_end_ = 0;  // entries from here on wait
};

}  // namespace dapple::roce

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs of a trace, and which post, packet, completion and poll belong together. The trace does not number
// them, but each queue keeps its order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "tools/picture/packets.hpp"
#include "tools/picture/stage.hpp"

namespace dapple::picture {

constexpr size_t kNone = SIZE_MAX;

// A request from its post to its completion.
struct Request {
  uint64_t wr_id = 0;
  bool signaled = false;
  bool is_read = false;  // the responder answers with data
  bool has_packets = true;
  uint64_t remote_address = 0;
  size_t post = kNone;  // the items
  size_t span = kNone;  // on the queue pair's lane
  size_t first_packet = kNone;
  size_t last_packet = kNone;
  size_t acknowledgement = kNone;
  uint32_t first_psn = 0;
  uint32_t last_psn = 0;
};

struct QueuePair {
  uint32_t process = 0;  // 0: not in the trace
  uint32_t peer = 0;
  std::deque<Request> sends;  // without a completion, in the order of their posts
  std::deque<Request> receives;
  int64_t busy_until_ns[2] = {};     // of the lane of sends, and of that of receives
  std::optional<uint32_t> next_psn;  // of the packets that it sends
  std::deque<size_t> arrivals;       // the last packets of messages that use up a receive
};

class Queues {
 public:
  explicit Queues(Stage& stage) : stage_(stage) {}

  void tell(const TraceLine& line);
  void tell(const CapturedPacket& packet);
  // The requests that never complete.
  void end(int64_t time_ns);

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // a process and the address of an object

  // In queue_calls.cpp.
  void post_send(const TraceLine& line);
  void post_receive(const TraceLine& line);
  void refuse(const TraceLine& line);
  void call(const TraceLine& line);
  void complete(const TraceLine& line);
  void poll(const TraceLine& line);
  void wait(size_t lane, const TraceLine& end, int64_t begin_ns, std::string name);
  void request_notification(const TraceLine& line);
  void notify(const TraceLine& line);
  bool complete_from(std::deque<Request>& requests, const TraceLine& line, size_t completion, bool receives);
  void draw_span(const Request& request, QueuePair& queue_pair, bool receives, int64_t end_ns);
  std::string lane_name(uint32_t qpn, bool receives) const;

  // In queue_packets.cpp.
  uint32_t source_of(const CapturedPacket& packet) const;
  size_t add_packet(const CapturedPacket& packet, uint32_t source);
  bool join_ends(const CapturedPacket& packet);
  void send_again(const CapturedPacket& packet, QueuePair& source, size_t item);
  void send_request(const CapturedPacket& packet, QueuePair& source, size_t item);
  void begin_message(const CapturedPacket& packet, QueuePair& source, size_t item);
  void answer(const CapturedPacket& packet, QueuePair& requester, size_t item);

  Stage& stage_;
  std::map<uint32_t, QueuePair> queue_pairs_;
  std::map<uint32_t, uint32_t> sources_;  // the queue pair that sends to another one, by the other one's number
  std::map<Key, std::deque<Request>> shared_receives_;
  std::map<Key, std::deque<size_t>> unpolled_;
  // Of completion queues that the program has asked for an event, the completion that made it due: kNone until then.
  std::map<Key, size_t> notified_by_;
  std::map<Key, size_t> last_completion_;
  // Packets that were seen at one end only, by their bytes.
  std::map<std::string, size_t> sent_;  // the last time
  std::map<std::string, size_t> received_;
};

}  // namespace dapple::picture

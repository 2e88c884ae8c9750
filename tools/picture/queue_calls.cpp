// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Posts, completions, polls and other calls.
#include <fmt/format.h>

#include <algorithm>

#include "tools/picture/queues.hpp"

namespace dapple::picture {
namespace {

// Receives complete with these opcodes.
bool is_receive(const std::string& opcode) {
  return opcode.starts_with("RECV");
}

bool is_local(const std::string& opcode) {
  return opcode == "BIND_MW" || opcode == "LOCAL_INV";
}

bool is_read(const std::string& opcode) {
  return opcode == "RDMA_READ" || opcode.starts_with("ATOMIC_CMP") || opcode.starts_with("ATOMIC_FETCH") ||
         opcode == "FLUSH";
}

Request request_of(const TraceLine& line, size_t post) {
  const std::string opcode = line.text("opcode");
  Request request;
  request.wr_id = line.number("wr_id");
  request.signaled = line.number("signaled") != 0;
  request.is_read = is_read(opcode);
  request.has_packets = !is_local(opcode);
  request.remote_address = line.number("remote_address");
  request.post = post;
  return request;
}

}  // namespace

std::string Queues::lane_name(uint32_t qpn, bool receives) const {
  return fmt::format("QP {:#x} {}", qpn, receives ? "receives" : "sends");
}

void Queues::post_send(const TraceLine& line) {
  const size_t post = stage_.add_line(Kind::kPost, stage_.thread_lane(line), line, "post " + line.text("opcode"));
  QueuePair& queue_pair = queue_pairs_[stage_.item(post).qpn];
  queue_pair.process = static_cast<uint32_t>(line.number("process"));
  queue_pair.sends.push_back(request_of(line, post));
}

void Queues::post_receive(const TraceLine& line) {
  const size_t post = stage_.add_line(Kind::kPost, stage_.thread_lane(line), line, "post RECV");
  const auto process = static_cast<uint32_t>(line.number("process"));
  if (line.has("srq")) {
    shared_receives_[{process, line.number("srq")}].push_back(request_of(line, post));
    return;
  }
  QueuePair& queue_pair = queue_pairs_[stage_.item(post).qpn];
  queue_pair.process = process;
  queue_pair.receives.push_back(request_of(line, post));
}

// The refused request and those behind it in its list have lines, but were not posted.
void Queues::refuse(const TraceLine& line) {
  const std::string call = line.text("call");
  const size_t refusal = stage_.add_line(Kind::kCall, stage_.thread_lane(line), line, call + " fails");
  const auto process = static_cast<uint32_t>(line.number("process"));
  QueuePair& queue_pair = queue_pairs_[stage_.item(refusal).qpn];
  std::deque<Request>& requests = line.has("srq")           ? shared_receives_[{process, line.number("srq")}]
                                  : call == "ibv_post_recv" ? queue_pair.receives
                                                            : queue_pair.sends;
  const uint64_t wr_id = line.number("wr_id");
  const auto last = std::find_if(requests.rbegin(), requests.rend(),
                                 [wr_id](const Request& request) { return request.wr_id == wr_id; });
  if (last == requests.rend()) return;
  for (auto each = last.base() - 1; each != requests.end(); ++each) stage_.item(each->post).bad = true;
  requests.erase(last.base() - 1, requests.end());
}

void Queues::call(const TraceLine& line) {
  const std::string name = line.text("call");
  const auto process = static_cast<uint32_t>(line.number("process"));
  const std::string state = line.text("state");
  const size_t index = stage_.add_line(Kind::kCall, stage_.thread_lane(line), line,
                                       state.empty() ? name : fmt::format("{} {}", name, state));
  if (name == "ibv_open_device") stage_.set_program(process, line.text("program"));
  const uint32_t qpn = stage_.item(index).qpn;
  if (qpn == 0 || line.has("error")) return;
  if (name == "ibv_create_qp" || name == "ibv_create_qp_ex" || state == "RESET") {
    queue_pairs_[qpn] = QueuePair();
    std::erase_if(sources_, [qpn](const auto& entry) { return entry.second == qpn; });
  }
  QueuePair& queue_pair = queue_pairs_[qpn];
  queue_pair.process = process;
  if (const auto peer = static_cast<uint32_t>(line.number("remote_qp")); peer != 0) {
    queue_pair.peer = peer;
    sources_[peer] = qpn;
    const auto other = queue_pairs_.find(peer);
    stage_.connect(qpn, process, peer, other == queue_pairs_.end() ? 0 : other->second.process);
  }
}

// A queue serves its requests in order, so the spans on its lane do not overlap.
void Queues::draw_span(const Request& request, QueuePair& queue_pair, bool receives, int64_t end_ns) {
  const Item& post = stage_.item(request.post);
  int64_t begin_ns = post.begin_ns;
  if (receives) begin_ns = request.first_packet == kNone ? end_ns : stage_.item(request.first_packet).begin_ns;
  int64_t& busy_until_ns = queue_pair.busy_until_ns[receives ? 1 : 0];
  begin_ns = std::min(std::max(begin_ns, busy_until_ns), end_ns);
  busy_until_ns = end_ns;
  const uint32_t qpn = post.qpn;
  const int64_t waited_ns = begin_ns - post.begin_ns;
  const std::string name = post.name.substr(sizeof "post " - 1);
  Json details = post.details;
  const size_t span =
      stage_.add(Kind::kRequest, stage_.lane(queue_pair.process, lane_name(qpn, receives)), begin_ns, name);
  details["waited_ns"] = waited_ns;
  stage_.item(span).details = std::move(details);
  stage_.item(span).end_ns = end_ns;
  stage_.item(span).qpn = qpn;
  stage_.arrow(request.post, span);
}

// Requests without a signal that stand before the completed one are complete, too.
bool Queues::complete_from(std::deque<Request>& requests, const TraceLine& line, size_t completion, bool receives) {
  const uint64_t wr_id = line.number("wr_id");
  const bool success = line.text("status") == "SUCCESS";
  const auto find = [&](bool only_signaled) {
    return std::find_if(requests.begin(), requests.end(), [&](const Request& request) {
      return request.wr_id == wr_id && (!only_signaled || request.signaled);
    });
  };
  auto found = !receives && success ? find(true) : requests.end();
  if (found == requests.end()) found = find(false);
  if (found == requests.end()) return false;
  QueuePair& queue_pair = queue_pairs_[stage_.item(completion).qpn];
  if (receives && success && !queue_pair.arrivals.empty()) {
    found->first_packet = queue_pair.arrivals.front();
    queue_pair.arrivals.pop_front();
    stage_.arrow(found->first_packet, completion);
  }
  const int64_t now_ns = line.time_ns;
  if (receives) {
    // A shared queue's requests have no queue pair before.
    stage_.item(found->post).qpn = stage_.item(completion).qpn;
    draw_span(*found, queue_pair, receives, now_ns);
    if (found->first_packet == kNone) stage_.arrow(found->post, completion);
    requests.erase(found);
    return true;
  }
  for (auto each = requests.begin(); each != std::next(found); ++each) draw_span(*each, queue_pair, receives, now_ns);
  if (found->acknowledgement != kNone) stage_.arrow(found->acknowledgement, completion);
  if (found->acknowledgement == kNone) stage_.arrow(found->post, completion);
  requests.erase(requests.begin(), std::next(found));
  return true;
}

void Queues::complete(const TraceLine& line) {
  const auto process = static_cast<uint32_t>(line.number("process"));
  const std::string opcode = line.text("opcode");
  const std::string status = line.text("status");
  const uint64_t cq = line.number("cq");
  const size_t completion = stage_.add_line(Kind::kCompletion, stage_.lane(process, fmt::format("CQ {:#x}", cq)), line,
                                            status == "SUCCESS" ? opcode : fmt::format("{} {}", opcode, status));
  stage_.item(completion).bad = status != "SUCCESS";
  unpolled_[{process, cq}].push_back(completion);
  last_completion_[{process, cq}] = completion;
  if (const auto armed = notified_by_.find({process, cq}); armed != notified_by_.end() && armed->second == kNone)
    armed->second = completion;
  QueuePair& queue_pair = queue_pairs_[stage_.item(completion).qpn];
  queue_pair.process = process;
  // The opcode of a failed completion means nothing.
  const bool receive = is_receive(opcode);
  if (complete_from(receive ? queue_pair.receives : queue_pair.sends, line, completion, receive)) return;
  if (!receive && status == "SUCCESS") return;
  for (auto& [key, requests] : shared_receives_)
    if (key.first == process && complete_from(requests, line, completion, true)) return;
  if (!receive) complete_from(queue_pair.receives, line, completion, true);
}

void Queues::poll(const TraceLine& line) {
  const uint64_t found = line.number("found");
  const size_t lane = stage_.thread_lane(line);
  if (line.has("vain_polls")) {
    const auto vain_ns = static_cast<int64_t>(std::min<uint64_t>(line.number("vain_ns"), INT32_MAX * uint64_t{1000}));
    wait(lane, line, line.time_ns - vain_ns, fmt::format("polls {} times in vain", line.number("vain_polls")));
  }
  const size_t poll = stage_.add_line(Kind::kPoll, lane, line, fmt::format("poll finds {}", found));
  std::deque<size_t>& unpolled = unpolled_[{static_cast<uint32_t>(line.number("process")), line.number("cq")}];
  for (uint64_t i = 0; i < found && !unpolled.empty(); i++) {
    const size_t completion = unpolled.front();
    unpolled.pop_front();
    // The completion stays in its queue until now.
    Item& waiting = stage_.item(completion);
    waiting.end_ns = std::max(waiting.begin_ns, stage_.item(poll).begin_ns);
    if (stage_.item(poll).qpn == 0) stage_.item(poll).qpn = waiting.qpn;
    stage_.arrow(completion, poll);
  }
}

// The time of a thread until this line, in which it has done nothing with the device.
void Queues::wait(size_t lane, const TraceLine& end, int64_t begin_ns, std::string name) {
  if (begin_ns >= end.time_ns) return;
  Item& waiting = stage_.item(stage_.add(Kind::kWait, lane, begin_ns, std::move(name)));
  waiting.end_ns = end.time_ns;
  waiting.cq = end.number("cq");
}

void Queues::request_notification(const TraceLine& line) {
  const Key cq = {static_cast<uint32_t>(line.number("process")), line.number("cq")};
  // The trace does not tell which completions are solicited.
  if (line.has("solicited_only")) {
    notified_by_.erase(cq);
  } else {
    notified_by_[cq] = kNone;
  }
  call(line);
}

void Queues::notify(const TraceLine& line) {
  const size_t lane = stage_.thread_lane(line);
  if (const std::optional<int64_t> begin_ns = stage_.last_end_ns(lane); begin_ns.has_value())
    wait(lane, line, *begin_ns, "idle until the event");
  const size_t event = stage_.add_line(Kind::kEvent, lane, line, "event of the completion queue");
  const Key cq = {static_cast<uint32_t>(line.number("process")), line.number("cq")};
  const auto armed = notified_by_.find(cq);
  if (armed == notified_by_.end()) return;
  // A completion and a request at the same time may have their lines in the other order.
  if (armed->second == kNone)
    if (const auto last = last_completion_.find(cq); last != last_completion_.end()) armed->second = last->second;
  if (armed->second != kNone) stage_.arrow(armed->second, event);
  notified_by_.erase(armed);
}

void Queues::tell(const TraceLine& line) {
  const std::string call_name = line.text("call");
  const std::string event = line.text("event");
  const bool is_post = call_name.starts_with("ibv_post_") || call_name == "ibv_wr_complete";
  if (is_post && line.has("error")) return refuse(line);
  if (is_post) return line.has("opcode") ? post_send(line) : post_receive(line);
  if (line.has("found")) return poll(line);
  if (call_name == "ibv_req_notify_cq") return request_notification(line);
  if (!call_name.empty()) return call(line);
  if (event == "completion") return complete(line);
  if (event == "notification") return notify(line);
  if (!event.empty()) {
    const std::string name = line.text("name");
    stage_.add_line(Kind::kEvent, stage_.thread_lane(line), line, name.empty() ? event : name);
  }
}

void Queues::end(int64_t time_ns) {
  for (auto& [qpn, queue_pair] : queue_pairs_) {
    if (queue_pair.sends.empty()) continue;
    const size_t before = queue_pair.sends.size();
    const Request& first = queue_pair.sends.front();
    const int64_t begin_ns = std::max(stage_.item(first.post).begin_ns, queue_pair.busy_until_ns[0]);
    const size_t open = stage_.add(Kind::kRequest, stage_.lane(queue_pair.process, lane_name(qpn, false)), begin_ns,
                                   fmt::format("{} without a completion", before));
    stage_.item(open).end_ns = std::max(begin_ns, time_ns);
    stage_.item(open).qpn = qpn;
    stage_.item(open).bad = true;
    for (const Request& each : queue_pair.sends) stage_.arrow(each.post, open);
  }
}

}  // namespace dapple::picture

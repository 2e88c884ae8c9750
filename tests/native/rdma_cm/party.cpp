// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/rdma_cm/party.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "tests/native/clock.hpp"

namespace dapple::tests {
namespace {

constexpr uint32_t kMessageSize = 64;
constexpr int kResolveMs = 2000;
constexpr int kEventsInTurn = 64;
// A program that was killed a moment ago may still hold the port.
constexpr double kBindPatience = 10;

enum class Phase : uint8_t { kAddress, kRoute, kConnect, kTalk, kPause, kDisconnect };

struct Link {
  rdma_cm_id* id = nullptr;
  bool server = false;
  bool broken = false;
  Phase phase = Phase::kAddress;
  double since = 0;  // its last step
  double until = 0;  // of kPause
  uint32_t messages = 0;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  alignas(64) char in[kMessageSize] = {};
  alignas(64) char out[kMessageSize] = {};
};

class Party {
 public:
  Party(const PartyOptions& options, PartyNews& news, const PartyOrders& orders)
      : options_(options), news_(news), orders_(orders), seed_(static_cast<unsigned>(getpid())) {}

  PartyEnd run(bool server) {
    bool good = open() && (!server || listen());
    while (good && !orders_.stop && !finished()) {
      good = (server || begin_some()) && wait() && look();
    }
    while (!links_.empty()) end(links_.front());
    if (listener_ != nullptr) rdma_destroy_id(listener_);
    if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
    return good ? kPartyStopped : kPartyFailed;
  }

 private:
  [[gnu::format(printf, 2, 3)]] bool fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (news_.problem[0] == '\0') vsnprintf(news_.problem, sizeof news_.problem, format, arguments);
    va_end(arguments);
    return false;
  }

  bool open() {
    channel_ = rdma_create_event_channel();
    if (channel_ == nullptr) return fail("rdma_create_event_channel: %s", strerror(errno));
    return fcntl(channel_->fd, F_SETFL, O_NONBLOCK) == 0 || fail("O_NONBLOCK: %s", strerror(errno));
  }

  sockaddr_in address() const {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(options_.port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return in;
  }

  bool listen() {
    sockaddr_in at = address();
    const double end = now() + kBindPatience;
    if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) return fail("create_id: %s", strerror(errno));
    while (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&at)) != 0) {
      if (errno != EADDRINUSE || now() > end) return fail("rdma_bind_addr: %s", strerror(errno));
      usleep(5000);
    }
    if (rdma_listen(listener_, 64) != 0) return fail("rdma_listen: %s", strerror(errno));
    news_.ready = true;
    return true;
  }

  bool finished() const { return options_.connections != 0 && links_.empty() && begun_ == options_.connections; }

  bool begin_some() {
    while (links_.size() < options_.at_once && !orders_.rest &&
           (options_.connections == 0 || begun_ < options_.connections)) {
      rdma_cm_id* id;
      begun_++;
      if (rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0) return call_failed(nullptr, "rdma_create_id");
      Link& link = add(id, false);
      sockaddr_in to = address();
      if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kResolveMs) == 0) continue;
      if (!call_failed(&link, "rdma_resolve_addr")) return false;
    }
    return true;
  }

  Link& add(rdma_cm_id* id, bool server) {
    Link& link = links_.emplace_back();
    link.id = id;
    link.server = server;
    link.since = now();
    link.phase = server ? Phase::kConnect : Phase::kAddress;
    id->context = &link;
    news_.open++;
    return link;
  }

  // A party that is told to stop leaves in the middle of connecting. Its peer may notice before it is told itself.
  bool calm() const { return options_.calm && !orders_.stop; }

  // A call for this connection has failed, which only a kill or such an end excuses. The connection is over.
  bool call_failed(Link* link, const char* what) {
    const int error = errno;
    if (calm()) return fail("%s: %s", what, strerror(error));
    news_.calls_failed[std::clamp<int>(error, 0, kErrnos - 1)]++;
    if (link == nullptr) return true;
    link->broken = !orders_.stop;
    end(*link);
    return true;
  }

  void end(Link& link) {
    (link.broken ? news_.broken : news_.done)++;
    news_.open--;
    if (link.id->qp != nullptr) rdma_destroy_qp(link.id);
    if (link.mr != nullptr) ibv_dereg_mr(link.mr);
    if (link.cq != nullptr) ibv_destroy_cq(link.cq);
    rdma_destroy_id(link.id);
    links_.remove_if([&](const Link& other) { return &other == &link; });
  }

  // The connection is over, for a reason that rdma_cm has reported.
  bool over(Link& link, const char* why) {
    if (calm()) return fail("a connection ended: %s", why);
    link.broken = !orders_.stop;
    end(link);
    return true;
  }

  bool make_queues(Link& link) {
    ibv_qp_init_attr attr = {};
    link.cq = ibv_create_cq(link.id->verbs, 8, nullptr, nullptr, 0);
    if (link.cq == nullptr) return false;
    attr.send_cq = attr.recv_cq = link.cq;
    attr.cap = {2, 2, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    if (rdma_create_qp(link.id, nullptr, &attr) != 0) return false;
    link.mr = rdma_reg_msgs(link.id, link.in, 2 * kMessageSize);
    return link.mr != nullptr && receive(link);
  }

  static bool receive(Link& link) { return rdma_post_recv(link.id, nullptr, link.in, kMessageSize, link.mr) == 0; }
  bool send(Link& link) {
    memcpy(link.out, &link.messages, sizeof link.messages);
    return rdma_post_send(link.id, nullptr, link.out, kMessageSize, link.mr, 0) == 0 || fail("rdma_post_send");
  }

  static rdma_conn_param parameters() {
    rdma_conn_param made = {};
    made.responder_resources = made.initiator_depth = 1;
    made.retry_count = made.rnr_retry_count = 7;
    return made;
  }

  bool wait() {
    pollfd waiting = {channel_->fd, POLLIN, 0};
    bool talks = false;
    for (const Link& link : links_) talks = talks || link.phase == Phase::kTalk;
    if (poll(&waiting, 1, talks ? 0 : 1) < 0 && errno != EINTR) return fail("poll: %s", strerror(errno));
    rdma_cm_event* event;
    // A flood of requests does not keep the party from its messages.
    for (int i = 0; i < kEventsInTurn; i++) {
      if (rdma_get_cm_event(channel_, &event) != 0) {
        if (errno == EAGAIN || errno == EINTR) break;
        return call_failed(nullptr, "rdma_get_cm_event");
      }
      const rdma_cm_event seen = *event;
      news_.events[static_cast<uint32_t>(seen.event) % kEventKinds]++;
      news_.steps++;
      if (rdma_ack_cm_event(event) != 0) return fail("rdma_ack_cm_event: %s", strerror(errno));
      if (!take(seen)) return false;
    }
    return true;
  }

  bool take(const rdma_cm_event& event) {
    if (event.id == listener_ && event.event != RDMA_CM_EVENT_CONNECT_REQUEST) {
      return fail("%s for a listener", rdma_event_str(event.event));
    }
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) return take_request(event.id);
    Link& link = *static_cast<Link*>(event.id->context);
    step(link);
    const Phase phase = link.phase;
    switch (event.event) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (phase != Phase::kAddress) break;
        link.phase = Phase::kRoute;
        return rdma_resolve_route(link.id, kResolveMs) == 0 || call_failed(&link, "rdma_resolve_route");
      case RDMA_CM_EVENT_ROUTE_RESOLVED: {
        if (phase != Phase::kRoute) break;
        link.phase = Phase::kConnect;
        if (!make_queues(link)) return call_failed(&link, "rdma_create_qp");
        rdma_conn_param with = parameters();
        return rdma_connect(link.id, &with) == 0 || call_failed(&link, "rdma_connect");
      }
      case RDMA_CM_EVENT_ESTABLISHED:
        if (phase != Phase::kConnect) break;
        link.phase = Phase::kTalk;
        return link.server || send(link);
      case RDMA_CM_EVENT_REJECTED:
        // Rejected by the server, or because nobody listens.
        if (options_.calm && !link.server && event.status == 28 && options_.reject_one_in != 0) {
          end(link);
          return true;
        }
        return over(link, "rejected");
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_CONNECT_ERROR:
        if (phase != Phase::kConnect) break;
        return over(link, rdma_event_str(event.event));
      case RDMA_CM_EVENT_DISCONNECTED:
        if (phase < Phase::kConnect) break;
        // The client decides when to disconnect.
        if (!link.server && phase != Phase::kDisconnect) return over(link, "disconnected");
        // In kConnect, too: if the RTU got lost, the first that rdma_cm hears of the connection is its end.
        if (link.server && link.messages < options_.messages) return over(link, "disconnected too early");
        if (link.server) rdma_disconnect(link.id);
        end(link);
        return true;
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return true;
      default:
        break;
    }
    return fail("%s, status %d, in phase %d of a %s", rdma_event_str(event.event), event.status,
                static_cast<int>(phase), link.server ? "server" : "client");
  }

  bool take_request(rdma_cm_id* id) {
    if (options_.reject_one_in != 0 && static_cast<uint32_t>(rand_r(&seed_)) % options_.reject_one_in == 0) {
      const bool told = rdma_reject(id, nullptr, 0) == 0 || call_failed(nullptr, "rdma_reject");
      rdma_destroy_id(id);
      return told;
    }
    Link& link = add(id, true);
    if (!make_queues(link)) return call_failed(&link, "rdma_create_qp");
    rdma_conn_param with = parameters();
    return rdma_accept(id, &with) == 0 || call_failed(&link, "rdma_accept");
  }

  void step(Link& link) {
    const double time = now();
    const auto took = static_cast<uint32_t>((time - link.since) * 1000);
    if (took > news_.slowest_ms) news_.slowest_ms = took;
    link.since = time;
  }

  // Handles completions and time-outs.
  bool look() {
    const double time = now();
    for (auto at = links_.begin(); at != links_.end();) {
      Link& link = *at++;
      if (time - link.since > options_.patience) {
        return fail("a %s hangs in phase %d", link.server ? "server" : "client", static_cast<int>(link.phase));
      }
      if (link.phase == Phase::kPause && time >= link.until) {
        link.phase = Phase::kDisconnect;
        if (rdma_disconnect(link.id) != 0 && !call_failed(&link, "rdma_disconnect")) return false;
        continue;
      }
      if (link.cq != nullptr && !poll_cq(link)) return false;
    }
    return true;
  }

  bool poll_cq(Link& link) {
    ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(link.cq, 1, &wc)) > 0) {
      // After the connection has ended, from either side, the posted requests are flushed.
      if (wc.status == IBV_WC_WR_FLUSH_ERR) continue;
      if (wc.status != IBV_WC_SUCCESS) return broken_by(link, wc.status);
      // A client's message may arrive before the event.
      if (wc.opcode != IBV_WC_RECV) continue;
      news_.steps++;
      step(link);
      uint32_t number;
      memcpy(&number, link.in, sizeof number);
      if (number != link.messages) return fail("message %u instead of %u", number, link.messages);
      if (!receive(link)) return fail("rdma_post_recv: %s", strerror(errno));
      if (link.server) {
        if (!send(link)) return false;
        link.messages++;
      } else if (++link.messages < options_.messages) {
        if (!send(link)) return false;
      } else {
        link.phase = Phase::kPause;
        const uint32_t most = options_.most_pause_ms + 1;
        link.until = now() + static_cast<double>(static_cast<uint32_t>(rand_r(&seed_)) % most) / 1000;
      }
    }
    return count == 0 || fail("ibv_poll_cq: %d", count);
  }

  bool broken_by(Link& link, ibv_wc_status status) {
    if (status != IBV_WC_RETRY_EXC_ERR) return fail("a completion with %s", ibv_wc_status_str(status));
    if (calm()) return fail("retries exceeded");
    link.broken = true;
    link.phase = Phase::kDisconnect;
    step(link);
    return rdma_disconnect(link.id) == 0 || call_failed(&link, "rdma_disconnect");
  }

  const PartyOptions options_;
  PartyNews& news_;
  const PartyOrders& orders_;
  unsigned seed_;
  uint64_t begun_ = 0;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  std::list<Link> links_;
};

}  // namespace

PartyEnd serve(const PartyOptions& options, PartyNews& news, const PartyOrders& orders) {
  return Party(options, news, orders).run(true);
}

PartyEnd call(const PartyOptions& options, PartyNews& news, const PartyOrders& orders) {
  return Party(options, news, orders).run(false);
}

}  // namespace dapple::tests

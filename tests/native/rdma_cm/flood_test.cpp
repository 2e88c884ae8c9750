// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A stranger floods dappled with requests for one server's port, with repetitions and with invalid datagrams, while
// clients of this and of another server make connections. The stranger's effects are limited and counted, and all
// connections of the others succeed. Then one program listens a thousand times. Runs under dapple-run.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "provider/dappled/rdma_cm/packets/mad_wire.hpp"
#include "provider/network/gid.hpp"
#include "provider/protocol/messages.hpp"
#include "roce/cm/ip_service.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/rdma_cm/party.hpp"

using namespace dapple;
using namespace dapple::tests;
namespace cm = dapple::roce::cm;

namespace {

constexpr uint16_t kPort = 7174, kFloodedPort = 7175, kFirstOfMany = 21000;
constexpr uint32_t kRequests = 6000;
constexpr uint64_t kSharing = 10;  // connections with the flooded server, after the flood has reached its limit
constexpr uint64_t kMaxHalfOpen = 1024 + 64;  // of one listener: not confirmed, and in the backlog
constexpr int kMany = 1000;
constexpr unsigned long kMaxQueued = 128 << 10;  // bytes as the kernel counts them, of 416 KiB at least
constexpr double kPatience = 60;                 // seconds

struct Shared {
  PartyOrders orders;
  PartyNews server, client, flooded, sharing;
};

Shared* shared;
Watcher watcher;

cm::Gid loopback_gid(uint8_t last) {
  cm::Gid gid{};
  const uint8_t bytes[4] = {127, 0, 0, last};
  soft::ipv4_gid(bytes, gid.data());
  return gid;
}

// 127.0.0.66 sends to 127.0.0.1.
class Stranger {
 public:
  bool open() {
    socket_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    soft::Problem problem;
    wire_ = dappled::rdma_cm::MadWire::open(socket_.get(), false, nullptr, tap_, problem);
    path_.local = loopback_gid(66);
    path_.remote = loopback_gid(1);
    if (wire_ == nullptr) printf("%s\n", problem.line);
    return wire_ != nullptr;
  }
  void ask(uint32_t number) {
    cm::Req req;
    req.comm_id = 0x10000 + number;
    req.ca_guid = 0xBAD;
    req.qpn = 0x1000 + number;
    req.service = cm::Service::kReliable;
    req.service_id = cm::service_id_of(cm::PortSpace::kTcp, kFloodedPort);
    req.mtu = 3;
    req.ack_timeout = 17;
    // Long enough for a slow server to reach the limit of half-open handshakes before the first ones end.
    req.local_response_timeout = req.remote_response_timeout = 20;
    req.max_cm_retries = 3;
    req.local_gid = path_.local;
    req.remote_gid = path_.remote;
    cm::write_ip_header({.ipv6 = false, .source_port = 9, .source = path_.local, .destination = path_.remote},
                        req.private_data);
    wire_->send(path_, 1, cm::make_mad(number, req));
  }
  // Wrong versions, classes, methods, attributes and ids.
  void babble(unsigned& seed) {
    cm::Mad mad = cm::make_mad(7, cm::Rtu{});
    for (int i = 0; i < 40; i++) {
      const auto at = static_cast<size_t>(rand_r(&seed)) % (i % 2 == 0 ? cm::kMadHeaderSize : mad.size());
      mad[at] = static_cast<std::byte>(rand_r(&seed));
    }
    wire_->send(path_, 1, mad);
  }

 private:
  struct Nobody final : soft::PacketTap {
    void write(Direction, const roce::IcrcAddresses&, uint8_t, uint8_t, std::span<const std::byte>) override {}
  };

  soft::OwnedFd socket_;
  Nobody tap_;
  std::unique_ptr<dappled::rdma_cm::MadWire> wire_;
  cm::Path path_;
};

// The longest queue of a socket at RoCE's port.
unsigned long queued() {
  unsigned long longest = 0;
  for (const char* name : {"/proc/net/udp", "/proc/net/udp6"}) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(name, "re"), fclose);
    char line[256];
    while (file != nullptr && fgets(line, sizeof line, file.get()) != nullptr) {
      unsigned port;
      unsigned long bytes;
      if (sscanf(line, " %*u: %*[0-9A-F]:%x %*s %*x %*x:%lx", &port, &bytes) == 2 && port == soft::kRocePort) {
        longest = std::max(longest, bytes);
      }
    }
  }
  return longest;
}

// Waits until dappled has taken most of its queue. A flood beyond that loses everyone's datagrams, whatever dappled
// does.
bool let_it_follow() {
  const double end = now() + kPatience;
  while (queued() > kMaxQueued) {
    if (now() > end) return false;
    usleep(200);
  }
  return true;
}

pid_t begin(PartyEnd (*live)(const PartyOptions&, PartyNews&, const PartyOrders&), const PartyOptions& options,
            PartyNews& news) {
  return start_process([&] { return live(options, news, shared->orders); });
}

void flood() {
  Stranger stranger;
  if (!stranger.open()) return failed("no wire for the stranger");
  unsigned seed = 3;
  const uint64_t before = shared->client.done;
  uint64_t sharing_before = shared->sharing.done;
  bool reached = false;
  uint64_t most_half_open = 0;
  soft::StatusReply status;
  const soft::CmStatus& count = status.connection_management;
  const double end = now() + kPatience;
  for (uint32_t i = 0; i < kRequests || shared->client.done < before + 20 || !reached ||
                       shared->sharing.done < sharing_before + kSharing;
       i++) {
    stranger.ask(i % kRequests);
    if (i % 4 == 0) stranger.ask(i / 2);
    if (i % 4 == 1) stranger.babble(seed);
    if (i % 16 == 0 && !let_it_follow()) return failed("dappled takes nothing from its socket");
    if (i % 64 != 0) continue;
    if (watcher.status(status) && count.half_open > most_half_open) most_half_open = count.half_open;
    if (!reached && count.evicted != 0) {
      reached = true;
      sharing_before = shared->sharing.done;
    }
    if (shared->client.problem[0] != '\0' || shared->sharing.problem[0] != '\0' || now() > end) break;
  }
  if (!watcher.status(status)) return failed("dappled does not answer");
  watcher.measure(static_cast<pid_t>(status.process));
  printf(
      "%llu connections beside the flood, %llu with the flooded server; %llu datagrams, %llu half open at most, %llu "
      "given up for newer ones, %llu beyond the backlog, %llu repeated, %llu malformed\n",
      static_cast<unsigned long long>(shared->client.done - before),
      static_cast<unsigned long long>(shared->sharing.done - sharing_before),
      static_cast<unsigned long long>(count.received), static_cast<unsigned long long>(most_half_open),
      static_cast<unsigned long long>(count.evicted), static_cast<unsigned long long>(count.over_backlog),
      static_cast<unsigned long long>(count.duplicates), static_cast<unsigned long long>(count.malformed));
  // The client's own handshake counts, too.
  if (most_half_open > kMaxHalfOpen + 2) failed("too many are half open");
  if (count.malformed == 0 || count.duplicates == 0) failed("not everything is counted");
  if (!reached) failed("the flood does not reach the limit");
  if (shared->sharing.done < sharing_before + kSharing) failed("the flooded server is deaf", shared->sharing.problem);
  shared->orders.rest = true;
  const bool over =
      await(kPatience, [&] { return watcher.status(status) && count.half_open == 0 && shared->flooded.open == 0; });
  if (!over) failed("what the stranger began does not end", shared->flooded.problem);
}

// One program has a thousand listeners; the last one gets a request.
int listen_often() {
  rdma_event_channel* channel = rdma_create_event_channel();
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rdma_cm_id* id = nullptr;
  if (channel == nullptr) return 1;
  for (int i = 0; i < kMany; i++) {
    at.sin_port = htons(static_cast<uint16_t>(kFirstOfMany + i));
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return 2;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)) != 0 || rdma_listen(id, 4) != 0) return 3;
  }
  const rdma_cm_id* last = id;
  const rdma_cm_event_type wanted[] = {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED,
                                       RDMA_CM_EVENT_CONNECT_REQUEST};
  rdma_conn_param parameters = {};
  parameters.qp_num = 0x10001;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return 4;
  if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&at), 2000) != 0) return 5;
  for (const rdma_cm_event_type type : wanted) {
    rdma_cm_event* event;
    if (rdma_get_cm_event(channel, &event) != 0 || event->event != type) return 6;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id != last) return 7;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_resolve_route(id, 2000) != 0) return 8;
    if (type == RDMA_CM_EVENT_ROUTE_RESOLVED && rdma_connect(id, &parameters) != 0) return 9;
  }
  return 0;
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  PartyOptions options;
  options.at_once = 1;
  options.port = kPort;
  const pid_t server = begin(serve, options, shared->server);
  PartyOptions flooded_options = options;
  flooded_options.port = kFloodedPort;
  flooded_options.calm = false;
  const pid_t flooded = begin(serve, flooded_options, shared->flooded);
  await(kPatience, [] { return shared->server.ready && shared->flooded.ready; });
  const pid_t client = begin(call, options, shared->client);
  if (!await(kPatience, [] { return shared->client.done > 5; })) failed("no connection", shared->client.problem);
  const pid_t sharing = begin(call, flooded_options, shared->sharing);
  if (!await(kPatience, [] { return shared->sharing.done > 1; })) failed("no connection", shared->sharing.problem);
  flood();
  if (!ends_with(start_process(listen_often), 0)) failed("a thousand listeners");
  shared->orders.stop = true;
  watcher.close();
  if (!ends_with(client, kPartyStopped)) failed("the client", shared->client.problem);
  if (!ends_with(sharing, kPartyStopped)) failed("the flooded server's client", shared->sharing.problem);
  if (!ends_with(server, kPartyStopped)) failed("the server", shared->server.problem);
  if (!ends_with(flooded, kPartyStopped)) failed("the flooded server", shared->flooded.problem);
  if (shared->client.broken != 0) failed("connections broke");
  expect_nothing_left();
  if (!watcher.report()) failed("dappled takes too much memory, or has too many descriptors");
  return failures() == 0 ? 0 : 1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// cm-peer LOCAL connect|resolve REMOTE [PORT], cm-peer LOCAL accept|reject|ignore|answer: the connection manager at UDP
// port 4791 of an IPv4 address, as the peer of the kernel's rdma_cm. It prints each event and ends after the last one,
// or after 30 s with code 1. With CM_PEER_LOSE in the environment it drops the first message of each kind that it
// sends.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "roce/cm/manager.hpp"
#include "roce/packet/icrc.hpp"
#include "tests/roce-support/crc32.hpp"
#include "tests/roce-support/frame.hpp"

using namespace dapple::roce;
using namespace dapple::roce::cm;

namespace {

constexpr uint16_t kRocePort = 4791;
constexpr uint16_t kDefaultPort = 7174;
constexpr Time kSecond = 1'000'000'000;

Time now() {
  return static_cast<Time>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

Gid gid_of(in_addr address) {
  Gid gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  std::memcpy(&gid[12], &address, 4);
  return gid;
}

class Peer final : public Host {
 public:
  Peer(const char* local, std::string what) : what_(std::move(what)) {
    inet_pton(AF_INET, local, &local_);
    socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    // Identification 0 and "don't fragment", as the ICRC requires.
    const int discover = IP_PMTUDISC_DO;
    setsockopt(socket_, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    const sockaddr_in address = place(local_);
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      std::perror("bind");
      std::exit(1);
    }
    cm_ = Manager::create({}, *this);
  }

  void send(const Path& path, const Mad& mad) override {
    const unsigned attribute = static_cast<unsigned>(mad[17]) & 31;
    if (lose_ && (lost_ >> attribute & 1) == 0) {
      lost_ |= 1U << attribute;
      return;
    }
    Headers headers;
    headers.opcode = opcode_of(Transport::kUd, Operation::kSendOnly);
    headers.destination_qpn = kGsiQpn;
    headers.deth = {kGsiQkey, kGsiQpn};
    headers.psn = psn_++;
    test::Bytes packet = test::transport_of(headers, mad);
    in_addr to;
    std::memcpy(&to, &path.remote[12], 4);
    IcrcAddresses addresses;
    std::memcpy(addresses.source, &local_, 4);
    std::memcpy(addresses.destination, &to, 4);
    addresses.source_port = kRocePort;
    const uint32_t icrc = icrc_of(icrc_prefix(addresses, packet.size(), test::crc32), packet, test::crc32);
    const auto* bytes = reinterpret_cast<const std::byte*>(&icrc);
    packet.insert(packet.end(), bytes, bytes + sizeof icrc);
    const sockaddr_in address = place(to);
    sendto(socket_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  uint64_t random() override { return static_cast<uint64_t>(device_()) << 32 | device_(); }

  void event(const Event& event) override {
    constexpr const char* kNames[] = {"connect request", "response",      "established",  "rejected",  "unreachable",
                                      "disconnected",    "timewait exit", "SIDR request", "SIDR reply"};
    std::printf("%s", kNames[static_cast<size_t>(event.type)]);
    if (event.type == EventType::kRejected) std::printf(" %u", static_cast<unsigned>(event.reason));
    if (event.ip != nullptr) std::printf(" port %u", event.ip->source_port == 0 ? 0U : port_of_request(event));
    if (event.sidr_rep != nullptr)
      std::printf(" status %u qkey 0x%x", static_cast<unsigned>(event.sidr_rep->status), event.sidr_rep->qkey);
    std::printf(", %zu bytes\n", event.private_data.size());
    std::fflush(stdout);
    next_ = event.type;
    id_ = event.id;
    last_ = event.last;
    if (event.req != nullptr) req_ = *event.req;
  }

  int run(const char* remote, uint16_t port) {
    begin(remote, port);
    const Time end = now() + 30 * kSecond;
    while (!last_ && now() < end) {
      const Time wake = std::min({cm_->deadline(), disconnect_at_, end});
      pollfd ready{socket_, POLLIN, 0};
      poll(&ready, 1, wake <= now() ? 0 : static_cast<int>((wake - now()) / 1'000'000 + 1));
      if ((ready.revents & POLLIN) != 0) receive();
      cm_->advance(now());
      if (next_) react(*std::exchange(next_, std::nullopt));
      if (now() >= disconnect_at_) {
        disconnect_at_ = kNever;
        std::printf("disconnect: %d\n", static_cast<int>(cm_->disconnect(now(), id_, {})));
      }
    }
    // The consumer's last answer; its peer may ask for it again.
    for (int i = 0; last_ && i < 10; ++i) {
      pollfd ready{socket_, POLLIN, 0};
      if (poll(&ready, 1, 50) > 0) receive();
    }
    const Counters& count = cm_->counters();
    std::printf("resent %llu duplicates %llu unexpected %llu unknown %llu malformed %llu\n",
                static_cast<unsigned long long>(count.resent), static_cast<unsigned long long>(count.duplicates),
                static_cast<unsigned long long>(count.unexpected), static_cast<unsigned long long>(count.unknown),
                static_cast<unsigned long long>(count.malformed));
    return last_ ? 0 : 1;
  }

 private:
  static sockaddr_in place(in_addr address) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr = address;
    place.sin_port = htons(kRocePort);
    return place;
  }

  static unsigned port_of_request(const Event& event) {
    return port_of(event.req != nullptr ? event.req->service_id : event.sidr_req->service_id);
  }

  Path path_to(in_addr remote) const {
    return {.ca_guid = 0x0202020202020202, .local = gid_of(local_), .remote = gid_of(remote)};
  }

  // Waits until the kernel has asked for a lost RTU: rping's server hangs when it is disconnected before it is
  // connected.
  Time patience() const { return lose_ ? 6 * kSecond : kSecond / 2; }

  void begin(const char* remote, uint16_t port) {
    if (remote == nullptr) {
      ListenParameters parameters;
      parameters.datagram = what_ == "answer";
      parameters.service_id = service_id_of(parameters.datagram ? PortSpace::kUdp : PortSpace::kTcp, kDefaultPort);
      Id listener = kNoId;
      (void)cm_->listen(parameters, listener);
      return;
    }
    in_addr to{};
    inet_pton(AF_INET, remote, &to);
    const IpHeader ip{false, 40000, gid_of(local_), gid_of(to)};
    if (what_ == "resolve") {
      SidrReq request;
      request.service_id = service_id_of(PortSpace::kUdp, port);
      write_ip_header(ip, request.private_data);
      (void)cm_->resolve(now(), 0, path_to(to), request, 20, 15, id_);
      return;
    }
    Req req;
    req.service_id = service_id_of(PortSpace::kTcp, port);
    req.qpn = 0x20000 + (device_() & 0xFFFF);
    req.psn = device_() & 0xFFFFFF;
    req.responder_resources = 1;
    req.initiator_depth = 1;
    req.local_gid = ip.source;
    req.remote_gid = ip.destination;
    write_ip_header(ip, req.private_data);
    (void)cm_->connect(now(), 0, path_to(to), req, id_);
  }

  void receive() {
    std::byte bytes[2048];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(socket_, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < static_cast<ssize_t>(kIcrcSize)) return;
    Packet packet;
    if (parse({bytes, static_cast<size_t>(got) - kIcrcSize}, packet) != ParseError::kNone) return;
    // The consumer has no queue pair, so its data is lost.
    if (packet.headers.destination_qpn != kGsiQpn || packet.headers.deth.qkey != kGsiQkey) return;
    cm_->receive(now(), path_to(from.sin_addr), packet.payload);
  }

  void react(EventType event) {
    switch (event) {
      case EventType::kConnectRequest: {
        if (what_ == "reject") {
          std::byte why[4]{std::byte{'w'}, std::byte{'h'}, std::byte{'y'}};
          (void)cm_->reject(now(), id_, RejectReason::kConsumer, {}, why);
          last_ = true;
          return;
        }
        if (what_ == "ignore") return;
        Rep rep;
        rep.qpn = 0x30000 + (device_() & 0xFFFF);
        rep.psn = device_() & 0xFFFFFF;
        rep.responder_resources = req_.initiator_depth;
        rep.initiator_depth = req_.responder_resources;
        (void)cm_->accept(now(), id_, rep);
        return;
      }
      case EventType::kResponse:
        std::printf("establish: %d\n", static_cast<int>(cm_->establish(now(), id_, {})));
        disconnect_at_ = now() + patience();
        return;
      case EventType::kEstablished:
        disconnect_at_ = now() + patience();
        return;
      case EventType::kSidrRequest: {
        SidrRep reply;
        reply.qpn = 0x40000;
        reply.qkey = 0x01234567;
        (void)cm_->answer(now(), id_, reply);
        last_ = true;
        return;
      }
      default:
        return;
    }
  }

  const std::string what_;
  in_addr local_{};
  int socket_ = -1;
  uint32_t psn_ = 0;
  const bool lose_ = std::getenv("CM_PEER_LOSE") != nullptr;
  uint32_t lost_ = 0;
  std::random_device device_;
  std::unique_ptr<Manager> cm_;
  std::optional<EventType> next_;
  Id id_ = kNoId;
  Req req_;
  bool last_ = false;
  Time disconnect_at_ = kNever;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Peer peer(argv[1], argv[2]);
  return peer.run(argc > 3 ? argv[3] : nullptr,
                  argc > 4 ? static_cast<uint16_t>(std::strtoul(argv[4], nullptr, 0)) : kDefaultPort);
}

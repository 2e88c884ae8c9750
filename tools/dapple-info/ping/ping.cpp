// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/ping.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "provider/common/clock.hpp"
#include "provider/network/port_owner.hpp"
#include "provider/protocol/messages.hpp"
#include "tools/dapple-info/ping/asker.hpp"
#include "tools/dapple-info/ping/echo.hpp"
#include "tools/dapple-info/ping/through_dappled.hpp"

namespace dapple::info {
namespace {

constexpr int kAnswerMs = 1000;
// The pause lets other programs that want the port get it.
constexpr unsigned int kBetweenUs = 100'000;
// The time for which the kernel looks for a host on its link.
constexpr int64_t kNeighbourMs = 3300;
constexpr int kEchoMs = 500;
constexpr int kTooLargeMs = 300;
constexpr unsigned int kSmallEcho = 84;
constexpr unsigned int kHeaderRoom = 80;

int64_t microseconds_now() {
  return static_cast<int64_t>(now_ns() / 1000);
}

uint64_t random_number() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) < 0) number = static_cast<uint64_t>(microseconds_now());
  return number;
}

class Ping {
 public:
  Ping(PingFacts& facts, const std::function<void(const std::string&)>& tell) : facts_(facts), tell_(tell) {}

  void run(unsigned int count) {
    if (facts_.name_problem = resolve(facts_.peer, peer_); !facts_.name_problem.empty()) return;
    facts_.address = text_of(peer_);
    const Route route = route_to(peer_);
    // A blackhole route returns this error.
    facts_.route_error = route.error == EINVAL ? ENETUNREACH : route.error;
    if (route.error != 0) return;
    local_ = route.local;
    facts_.local = text_of(local_);
    facts_.netdev = route.netdev;
    ends_ = {gid_of(local_), gid_of(peer_)};
    tell_(fmt::format("{} from {}{}", facts_.address, facts_.local,
                      route.netdev_mtu == 0 ? "" : fmt::format(", {} with MTU {}", route.netdev, route.netdev_mtu)));
    through_ = ThroughDappled::open(local_, peer_);
    if (through_ != nullptr) {
      tell_("programs here use the software device: dappled serves this ping");
    } else if (ends_.local == ends_.peer) {
      facts_.deaf =
          "The address is this host's own. To do: dapple-info without --ping shows the owner of the port here.";
    }
    if (const int error = asker_.open(local_, peer_); error != 0) {
      facts_.here_problem = fmt::format("No UDP socket can be used here: {}.", std::strerror(error));
      return;
    }
    begin_ = microseconds_now();
    for (unsigned int i = 0; i < count && !settled(); i++) {
      if (i > 0) usleep(kBetweenUs);
      ask();
    }
    if (settled()) return;
    echo_.open(local_, peer_);
    if (echo_) facts_.echo = echo_.comes_back(kSmallEcho, kEchoMs) ? Answered::kYes : Answered::kNo;
    if (facts_.answers_us.empty() && facts_.echo != Answered::kYes) wait_for_neighbour();
    if (!settled() && changes() == 0 && (!facts_.answers_us.empty() || !facts_.deaf.empty())) {
      look_at_mtu(route.netdev_mtu);
    }
  }

 private:
  bool settled() const {
    return !facts_.here_problem.empty() || facts_.port_closed || facts_.unreachable || facts_.prohibited;
  }
  unsigned int changes() const { return facts_.bad_icrc + facts_.changed_port + facts_.changed_address; }

  void note(const Trouble& trouble) {
    switch (trouble.kind) {
      case Trouble::Kind::kPortClosed:
        facts_.port_closed = true;
        break;
      case Trouble::Kind::kProhibited:
        facts_.prohibited = true;
        break;
      case Trouble::Kind::kUnreachable:
        facts_.unreachable = true;
        break;
      case Trouble::Kind::kTooLarge:
        return;
    }
    facts_.teller = trouble.teller.empty() || trouble.teller == facts_.local ? "this host" : trouble.teller;
  }

  void become_deaf(int error) {
    if (!facts_.deaf.empty()) return;
    const soft::PortOwner owner = soft::port_owner(soft::kRocePort);
    char line[soft::kLineSize];
    soft::describe(owner, soft::kRocePort, line, sizeof line);
    facts_.deaf = error == EADDRINUSE
                      ? fmt::format("{}.", line)
                      : fmt::format("UDP port {} cannot be opened here: {}.", soft::kRocePort, std::strerror(error));
    tell_("answers cannot be received here, only errors");
  }

  void ask() {
    // On this host, the listening socket would receive the question.
    soft::OwnedFd ear;
    if (through_ == nullptr && ends_.local != ends_.peer && !(ear = hear_at(local_))) become_deaf(errno);
    const uint64_t transaction = random_number();
    const auto request = static_cast<uint32_t>(transaction >> 7);
    facts_.asked++;
    const uint64_t wrong = through_ != nullptr ? through_->wrong_icrcs() : 0;
    const bool ready = through_ == nullptr || through_->prepare();
    const int64_t begin = microseconds_now();
    if (!ready || (through_ != nullptr && !through_->send())) {
      facts_.here_problem = "dappled, which has the port here, finds no route to the peer.";
      return;
    }
    // The question through dappled gets the answers; this socket gets the errors.
    if (const int error = asker_.send(question(ends_, asker_.port(), request, transaction)); error != 0) {
      // A firewall of this host causes this error.
      facts_.prohibited = error == EPERM || error == EACCES;
      facts_.unreachable = !facts_.prohibited;
      facts_.teller = "this host";
      return;
    }
    for (int64_t left = kAnswerMs; left > 0; left = kAnswerMs - (microseconds_now() - begin) / 1000) {
      pollfd waiting[2] = {{through_ != nullptr ? through_->fd() : ear.get(), POLLIN, 0}, {asker_.fd(), 0, 0}};
      if (poll(waiting, 2, static_cast<int>(left)) <= 0) continue;
      while (const auto trouble = asker_.trouble()) note(*trouble);
      if (settled()) return;
      if (waiting[0].revents == 0) continue;
      if (through_ != nullptr) {
        if (!through_->answered()) break;
        return answered(microseconds_now() - begin);
      }
      if (hear(ear.get(), request, transaction, begin)) return;
    }
    if (through_ != nullptr && through_->wrong_icrcs() > wrong) {
      facts_.bad_icrc++;
      tell_(fmt::format("question {}: a packet with a wrong ICRC arrived", facts_.asked));
      return;
    }
    if (ear || through_ != nullptr)
      tell_(fmt::format("question {}: no answer came within {} ms", facts_.asked, kAnswerMs));
  }

  void answered(int64_t took_us) {
    facts_.answers_us.push_back(static_cast<double>(took_us));
    tell_(fmt::format("question {}: answered after {:.3f} ms", facts_.asked, static_cast<double>(took_us) / 1000));
  }

  // True if the answer has arrived.
  bool hear(int ear, uint32_t request, uint64_t transaction, int64_t begin) {
    std::byte bytes[2048];
    Address from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(ear, bytes, sizeof bytes, 0, &from.any, &size);
    if (got < 0) return false;
    const int64_t took = microseconds_now() - begin;
    const uint16_t port = ntohs(from.any.sa_family == AF_INET ? from.in.sin_port : from.in6.sin6_port);
    const std::span<const std::byte> packet(bytes, static_cast<size_t>(got));
    switch (read_answer(packet, ends_, gid_of(from), port, request, transaction)) {
      case Reading::kForeign:
        return false;
      case Reading::kGood:
        answered(took);
        return true;
      case Reading::kPort:
        facts_.changed_port++;
        break;
      case Reading::kAddress:
        facts_.changed_address++;
        facts_.changed_to = text_of(from);
        break;
      case Reading::kBadIcrc:
        facts_.bad_icrc++;
        break;
    }
    tell_(fmt::format("question {}: the answer was changed on the way", facts_.asked));
    return true;
  }

  void wait_for_neighbour() {
    while (!settled()) {
      const int64_t left = kNeighbourMs - (microseconds_now() - begin_) / 1000;
      if (left <= 0) return;
      if (const auto trouble = asker_.trouble_within(static_cast<int>(left))) note(*trouble);
    }
  }

  void look_at_mtu(unsigned int netdev_mtu) {
    const unsigned int mtu = roce_mtu_of(netdev_mtu);
    if (mtu == 0) return;
    facts_.netdev_mtu = netdev_mtu;
    facts_.needed = facts_.passes = mtu + kHeaderRoom;
    asker_.send(filler(ends_, asker_.port(), facts_.needed));
    while (const auto trouble = asker_.trouble_within(kTooLargeMs)) {
      if (trouble->kind != Trouble::Kind::kTooLarge) continue;
      facts_.mtu_told = true;
      facts_.mtu_teller = trouble->teller.empty() ? "this host" : trouble->teller;
      facts_.passes = std::min(trouble->mtu, facts_.needed - 1);
      return;
    }
    // A bridge silently drops packets that are too large for it.
    if (facts_.echo != Answered::kYes) return;
    for (unsigned int smaller = mtu; smaller >= 256; smaller /= 2) {
      facts_.passes = smaller + kHeaderRoom;
      if (echo_.comes_back(facts_.passes, kEchoMs)) return;
    }
    facts_.passes = kSmallEcho;
  }

  PingFacts& facts_;
  const std::function<void(const std::string&)>& tell_;
  Address peer_{}, local_{};
  Ends ends_;
  Asker asker_;
  Echo echo_;
  std::unique_ptr<ThroughDappled> through_;  // null: no dappled holds the port here
  int64_t begin_ = 0;
};

}  // namespace

PingFacts ping(const std::string& peer, unsigned int count, const std::function<void(const std::string&)>& tell) {
  PingFacts facts;
  facts.peer = peer;
  Ping(facts, tell).run(count);
  return facts;
}

Json ping_as_json(const PingFacts& facts) {
  Json json = {{"peer", facts.peer},
               {"address", facts.address},
               {"local", facts.local},
               {"netdev", facts.netdev},
               {"result", word_of(judge(facts))},
               {"exit_status", static_cast<int>(judge(facts))},
               {"asked", facts.asked},
               {"round_trips_us", Json::array()},
               {"changed_on_the_way", facts.bad_icrc + facts.changed_port + facts.changed_address}};
  for (const double time : facts.answers_us) json["round_trips_us"].push_back(rounded(time));
  if (facts.netdev_mtu != 0) {
    json["netdev_mtu"] = facts.netdev_mtu;
    json["needed_bytes"] = facts.needed;
    json["passing_bytes"] = facts.passes;
  }
  json["explanation"] = ping_for_people(facts);
  return json;
}

}  // namespace dapple::info

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dapple::info {
namespace {

// Space for headers besides the payload: provider/network/port_mtu.hpp.
constexpr unsigned int kHeaderRoom = 80;

unsigned int changed(const PingFacts& facts) {
  return facts.bad_icrc + facts.changed_port + facts.changed_address;
}

std::string statistics(const PingFacts& facts) {
  std::string text = fmt::format("{} of {} questions were answered", facts.answers_us.size(), facts.asked);
  if (changed(facts) != 0) text += fmt::format(", {} with a change on the way", changed(facts));
  if (facts.answers_us.empty()) return text + "\n";
  const auto [least, most] = std::minmax_element(facts.answers_us.begin(), facts.answers_us.end());
  const double sum = std::accumulate(facts.answers_us.begin(), facts.answers_us.end(), 0.0);
  return text + fmt::format("; round trips: {:.3f} ms at least, {:.3f} ms on average, {:.3f} ms at most\n",
                            *least / 1000, sum / static_cast<double>(facts.answers_us.size()) / 1000, *most / 1000);
}

std::string said(const PingFacts& facts) {
  return facts.teller.empty() ? "" : fmt::format(" (reported by {})", facts.teller);
}

std::string about_silence(const PingFacts& facts) {
  std::string text = fmt::format("No answer came from UDP port 4791 of {}.\n", facts.address);
  if (facts.prohibited) {
    return text +
           fmt::format("A firewall forbids it{}.\nTo do: allow UDP port 4791 in both directions.\n", said(facts));
  }
  if (facts.echo == Answered::kYes) text += "The host itself answers an ICMP echo request, so a route exists.\n";
  if (facts.echo == Answered::kNo) text += "The host answers no ICMP echo request either: it may be off.\n";
  text +=
      "The reasons may be:\n"
      "  a firewall that drops UDP port 4791, on the way or at one end: allow it in both directions\n"
      "  NAT on the way: the peer drops packets whose addresses have changed, and dapple-info there counts a wrong "
      "ICRC\n"
      "  a RoCE device there whose connection management is not loaded: load rdma_cm (modprobe rdma_ucm), or run\n"
      "  dapple-info there, which shows the owner of the port\n";
  return text;
}

std::string about_changes(const PingFacts& facts) {
  std::string text;
  if (facts.changed_address != 0) {
    text += fmt::format("Answers seem to come from {} instead of {}: NAT changes addresses on the way.\n",
                        facts.changed_to, facts.address);
  } else if (facts.changed_port != 0) {
    text += "The source port of answers was changed on the way, as NAT does.\n";
  } else {
    text += "Answers arrive with a wrong ICRC: NAT has changed an address, or something on the way damages packets.\n";
  }
  return text +
         "RoCE protects addresses and ports by its checksum, so programs drop such packets.\n"
         "To do: use addresses that reach the peer without NAT (a bridge, a routed network or an overlay network).\n";
}

std::string about_mtu(const PingFacts& facts) {
  if (facts.netdev_mtu == 0) return {};
  if (facts.passes >= facts.needed) {
    return fmt::format("Packets of {} bytes, which RoCE's MTU of {} here needs, pass.\n", facts.needed,
                       roce_mtu_of(facts.needed));
  }
  std::string text =
      facts.mtu_told
          ? fmt::format("{} says that packets of more than {} bytes are too large.\n", facts.mtu_teller, facts.passes)
          : fmt::format("Echo requests of more than {} bytes get no answer, smaller ones do.\n", facts.passes);
  text += fmt::format("{} has an MTU of {}, so programs here may send packets of {} bytes.\n", facts.netdev,
                      facts.netdev_mtu, facts.needed);
  const unsigned int mtu = roce_mtu_of(facts.passes);
  text += "To do: raise the MTU on the way";
  if (mtu != 0) text += fmt::format(", or let programs use a path MTU of {}", mtu);
  return text + fmt::format(", or lower the MTU of {} to {} (ip link set {} mtu {}).\n", facts.netdev, facts.passes,
                            facts.netdev, facts.passes);
}

}  // namespace

unsigned int roce_mtu_of(unsigned int datagram_size) {
  for (unsigned int mtu = 4096; mtu >= 256; mtu /= 2) {
    if (mtu + kHeaderRoom <= datagram_size) return mtu;
  }
  return 0;
}

PingCode judge(const PingFacts& facts) {
  if (!facts.name_problem.empty()) return PingCode::kName;
  if (!facts.here_problem.empty()) return PingCode::kHere;
  if (facts.route_error != 0) return PingCode::kUnreachable;
  if (!facts.answers_us.empty()) {
    return facts.netdev_mtu != 0 && facts.passes < facts.needed ? PingCode::kMtu : PingCode::kGood;
  }
  if (changed(facts) != 0) return PingCode::kChanged;
  if (facts.port_closed) return PingCode::kPortClosed;
  if (facts.unreachable) return PingCode::kUnreachable;
  if (!facts.deaf.empty() && !facts.prohibited) return PingCode::kHere;
  return PingCode::kSilence;
}

std::string ping_for_people(const PingFacts& facts) {
  switch (judge(facts)) {
    case PingCode::kName:
      return fmt::format(
          "{} cannot be resolved: {}.\nTo do: check the spelling, /etc/hosts and the name server, or use an "
          "address.\n",
          facts.peer, facts.name_problem);
    case PingCode::kHere:
      if (!facts.here_problem.empty()) return facts.here_problem + "\n";
      return fmt::format("No error came from {}, and answers cannot be received here.\n{}\n", facts.address,
                         facts.deaf) +
             about_mtu(facts);
    case PingCode::kUnreachable:
      if (facts.route_error != 0) {
        return fmt::format(
            "There is no route to {}: {}.\nTo do: look at 'ip route get {}'; a container may have no "
            "network.\n",
            facts.address, strerror(facts.route_error), facts.address);
      }
      return fmt::format(
          "{} cannot be reached{}.\nTo do: check that the host is up, its address, and the routes on the "
          "way.\n",
          facts.address, said(facts));
    case PingCode::kPortClosed:
      return fmt::format(
          "{} is up, but has no RoCE: UDP port 4791 is closed{}.\nTo do: start a program there with "
          "dapple-run, or add rxe (rdma link add rxe0 type rxe netdev NETDEV).\nThe software device has the port only "
          "while a program uses it. A firewall that rejects UDP port 4791 looks the same.\n",
          facts.address, said(facts));
    case PingCode::kSilence:
      return statistics(facts) + about_silence(facts);
    case PingCode::kChanged:
      return statistics(facts) + about_changes(facts);
    case PingCode::kMtu:
      return statistics(facts) + about_mtu(facts) +
             "Small packets pass and large ones do not: programs connect, and then hang.\n";
    case PingCode::kGood:
      break;
  }
  std::string text = statistics(facts) + about_mtu(facts);
  if (facts.answers_us.size() < facts.asked) {
    return text + "Some packets get lost. RoCE sends them again, which is slow.\n";
  }
  return text + fmt::format("RoCE works between {} and {}.\n", facts.local, facts.address);
}

const char* word_of(PingCode code) {
  switch (code) {
    case PingCode::kGood:
      return "good";
    case PingCode::kName:
      return "name";
    case PingCode::kUnreachable:
      return "unreachable";
    case PingCode::kPortClosed:
      return "port closed";
    case PingCode::kSilence:
      return "silence";
    case PingCode::kChanged:
      return "changed on the way";
    case PingCode::kMtu:
      return "mtu";
    case PingCode::kHere:
      return "here";
  }
  return "";
}

}  // namespace dapple::info

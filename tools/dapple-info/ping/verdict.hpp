// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The findings of a ping, and their meaning in words. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dapple::info {

// The exit codes of dapple-info --ping. 2 means wrong options.
enum class PingCode {
  kGood = 0,
  kName = 3,
  kUnreachable = 4,
  kPortClosed = 5,
  kSilence = 6,
  kChanged = 7,
  kMtu = 8,
  kHere = 9,  // this end cannot ask, or cannot hear answers
};

enum class Answered { kUnknown, kYes, kNo };

struct PingFacts {
  std::string peer;     // as the user has written it
  std::string address;  // numeric
  std::string local;    // numeric
  std::string netdev;
  std::string name_problem;  // the resolver's error message; empty if the name was resolved
  std::string here_problem;  // why this end cannot ask at all; empty if it can
  std::string deaf;          // why this end asks but cannot hear answers; empty if it can
  int route_error = 0;       // the errno of looking up a route
  unsigned int asked = 0;
  std::vector<double> answers_us;  // round trips
  unsigned int bad_icrc = 0, changed_port = 0, changed_address = 0;
  std::string changed_to;  // the apparent source address of the answers
  bool port_closed = false;
  bool prohibited = false;             // a firewall reported it
  bool unreachable = false;            // a router or this host reported it
  std::string teller;                  // the sender of the last such report
  Answered echo = Answered::kUnknown;  // to an ICMP echo request
  unsigned int netdev_mtu = 0;         // 0: the other members are not set
  unsigned int needed = 0;             // the size of an IP datagram with RoCE's MTU on this netdev
  unsigned int passes = 0;             // the largest IP datagram that passes
  bool mtu_told = false;               // a router reported a packet that was too large; otherwise large echoes vanished
  std::string mtu_teller;
};

// The largest RoCE MTU whose packets fit into datagrams of this size; 0 if none does.
unsigned int roce_mtu_of(unsigned int datagram_size);

PingCode judge(const PingFacts& facts);

// The summary, after the lines for single answers.
std::string ping_for_people(const PingFacts& facts);

// The result as a word for JSON.
const char* word_of(PingCode code);

}  // namespace dapple::info

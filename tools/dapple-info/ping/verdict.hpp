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
  std::string peer;     // as the user named it
  std::string address;  // numeric
  std::string local;    // numeric
  std::string netdev;
  std::string name_problem;  // the resolver's words; empty if the name resolved
  std::string here_problem;  // why this end cannot ask at all; empty if it can
  std::string deaf;          // why this end asks but hears no answers; empty if it does
  int route_error = 0;       // errno of the look-up of a route
  unsigned int asked = 0;
  std::vector<double> answers_us;  // round trips
  unsigned int bad_icrc = 0, changed_port = 0, changed_address = 0;
  std::string changed_to;  // the address that answers seem to come from
  bool port_closed = false;
  bool prohibited = false;             // a firewall said so
  bool unreachable = false;            // a router or this host said so
  std::string teller;                  // who said the last of these
  Answered echo = Answered::kUnknown;  // to an ICMP echo request
  unsigned int netdev_mtu = 0;         // 0: the rest was not looked at
  unsigned int needed = 0;             // the size of a datagram that RoCE's MTU on this netdev needs
  unsigned int passes = 0;             // the largest size of a datagram that passes
  bool mtu_told = false;               // a router said that a packet was too large; else large echoes vanished
  std::string mtu_teller;
};

// The largest RoCE MTU whose packets fit into datagrams of this size; 0 if none does.
unsigned int roce_mtu_of(unsigned int datagram_size);

PingCode judge(const PingFacts& facts);

// The lines after the single answers.
std::string ping_for_people(const PingFacts& facts);

// A word for JSON.
const char* word_of(PingCode code);

}  // namespace dapple::info

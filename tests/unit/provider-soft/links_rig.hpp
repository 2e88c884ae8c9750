// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests of the links between processes of a host: both ends of a ring, in one process.
#pragma once

#include <string.h>
#include <sys/socket.h>

#include <cstdint>
#include <vector>

#include "provider/soft/links/links.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::soft::test {

// dappled hands out the lowest slots first.
inline constexpr uint32_t kThirdSlot = 252, kOneSlot = 253, kOtherSlot = 254;
inline constexpr Addresses kEnds = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1},
                                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 2}};

class Sink final : public ArrivalSink {
 public:
  void arrived(const Arrival& arrival) override {
    packets.emplace_back(arrival.transport.begin(), arrival.transport.end());
    acknowledgements.push_back(arrival.acknowledgement == nullptr ? 0 : arrival.acknowledgement->psn);
    good = good && memcmp(arrival.source, kEnds.source, 16) == 0 &&
           memcmp(arrival.destination, kEnds.destination, 16) == 0;
  }
  std::vector<std::vector<std::byte>> packets;
  std::vector<uint32_t> acknowledgements;  // PSNs; 0 for a packet without one
  bool good = true;
};

// One process' side. It has the slot's name in the network namespace.
struct Process {
  OwnedFd lease{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  SameHostCounters counters;
  Sink sink;
  TransportTable transports;
  SameHostLinks links;
  Transport transport = Transport::kNone;  // by the last get()

  explicit Process(uint32_t slot, uint64_t most_bytes = UINT64_MAX);
  RingTo* get(uint32_t slot) { return links.get(slot, transport); }
  // Attends the links, and returns the number of packets.
  size_t receive();
  bool has_event(int milliseconds = 0) const;
};

// Writes and publishes a packet. False if the ring is full.
bool write(RingTo* ring, size_t size, uint8_t value);

// A peer without a Process: its connection to the slot, its name, and its greeting. `file`: -1 for none.
OwnedFd connect_to(uint32_t slot);
OwnedFd listen_at(uint32_t slot);
void greet(const OwnedFd& socket, const RingHello& hello, int file);
// Tells whether the other end has closed. `why`: the reason that it sent before.
bool closed(const OwnedFd& socket, Transport* why = nullptr);

// Runs the tests in a network of their own, because dappled or another run may have the names of slots. A system
// without such namespaces has to do with its own network.
template <size_t kCount>
int run_in_own_network(const CMUnitTest (&tests)[kCount]) {
  (void)dapple::tests::enter_new_namespace();
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

}  // namespace dapple::soft::test

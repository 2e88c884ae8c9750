// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of connections, from given data.
#include "tools/dapple-info/node_transports.hpp"

#include "provider/network/gid.hpp"
#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple;
using namespace dapple::info;
using soft::Right;
using soft::Transport;

namespace {

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

soft::TransportRow row(Transport transport, uint32_t slot, uint8_t last, uint32_t queue_pairs) {
  soft::TransportRow made;
  const uint8_t own[] = {10, 0, 0, 1}, peer[] = {10, 0, 0, last};
  soft::ipv4_gid(own, made.source);
  soft::ipv4_gid(peer, made.destination);
  made.transport = transport;
  made.slot = static_cast<uint16_t>(slot);
  made.queue_pairs = queue_pairs;
  return made;
}

NodeTransports two_programs() {
  NodeTransports transports;
  ProgramTransports one, other;
  one.slot = 1;
  one.process = 100;
  one.ring_bytes = 132 * 1024;
  one.most_ring_bytes = 256 << 20;
  other.slot = 2;
  other.process = 200;
  transports.programs = {one, other};
  return transports;
}

void people__shared_memory() {
  NodeTransports transports = two_programs();
  transports.programs[0].rows = {row(Transport::kSharedMemory, 2, 2, 17)};
  transports.programs[0].rows[0].right = Right::kGranted;
  const std::string text = transports_for_people(transports);
  CHECK(holds(text, "\n100      132 KiB of at most 256 MiB\n"));
  CHECK(holds(
      text,
      "\n100      17           10.0.0.1  10.0.0.2  200             shared memory  the peer is on this host  yes\n"));
  CHECK(!holds(text, "not listed"));
}

void people__udp_and_reasons() {
  NodeTransports transports = two_programs();
  soft::TransportRow datagrams;
  datagrams.transport = Transport::kDatagrams;
  datagrams.queue_pairs = 3;
  transports.programs[0].rows = {row(Transport::kOtherHost, 0, 9, 1), datagrams,
                                 row(Transport::kPeerTakesNone, 2, 2, 1), row(Transport::kPeerTakesNone, 7, 3, 1)};
  transports.programs[0].unlisted_queue_pairs = 5;
  transports.programs[1].no_rings = Transport::kCapture;
  transports.programs[1].process = 0;
  const std::string text = transports_for_people(transports);
  CHECK(holds(text, "10.0.0.9  -               UDP  another host or network namespace "));
  CHECK(holds(text, "100      3            -         -         -               UDP  unreliable datagrams "));
  CHECK(holds(text, "UDP  the peer takes no packets by shared memory: DAPPLE_PCAP is set "));
  CHECK(holds(text, "UDP  the peer takes no packets by shared memory: no program has its slot "));
  CHECK(holds(text, "\nnot visible  none: DAPPLE_PCAP is set\n"));
  CHECK(holds(text, "\n5 more queue pairs are not listed\n"));
}

void people__peer_may_not_copy__why() {
  NodeTransports transports = two_programs();
  transports.programs[0].rows = {row(Transport::kSharedMemory, 2, 2, 1), row(Transport::kSharedMemory, 3, 3, 1)};
  transports.programs[0].rows[0].right = Right::kRefused;
  transports.programs[0].rows[1].right = static_cast<Right>(4711);
  const std::string text = transports_for_people(transports);
  CHECK(holds(text, "the peer is on this host  no: the kernel does not let the peer trace this process\n"));
  CHECK(holds(text, "the peer is on this host  -\n"));
  const Json list = transports_as_json(transports);
  CHECK_EQUAL(list[0]["peer_may_copy_here"], false);
  CHECK_EQUAL(list[0]["peer_may_copy_here_reason"], "refused");
  CHECK_EQUAL(list[1]["peer_may_copy_here_reason"], "none");
}

void people__no_program_or_no_answer() {
  NodeTransports transports;
  CHECK(transports_for_people(transports).empty());
  transports.problem = "refused";
  CHECK_EQUAL(transports_for_people(transports), "Transports of connections: not available: refused\n");
}

void json__one_object_for_each() {
  NodeTransports transports = two_programs();
  transports.programs[0].rows = {row(Transport::kSharedMemory, 2, 2, 17)};
  transports.programs[0].rows[0].right = Right::kGranted;
  transports.programs[1].rows = {row(Transport::kPeerGone, 1, 1, 1)};
  const Json list = transports_as_json(transports);
  CHECK_EQUAL(list.size(), 2);
  CHECK_EQUAL(list[0]["transport"], "shared_memory");
  CHECK(list[0]["reason"].is_null());
  CHECK_EQUAL(list[0]["peer_may_copy_here"], true);
  CHECK_EQUAL(list[0]["peer_may_copy_here_reason"], "granted");
  CHECK_EQUAL(list[0]["peer_process"], 200);
  CHECK_EQUAL(list[0]["queue_pairs"], 17);
  CHECK_EQUAL(list[1]["transport"], "udp");
  CHECK_EQUAL(list[1]["reason"], "peer_gone");
  CHECK(list[1]["peer_process"].is_null());
  CHECK_EQUAL(list[1]["peer"], "10.0.0.1");
  const Json programs = transport_programs_as_json(transports);
  CHECK_EQUAL(programs.size(), 2);
  CHECK_EQUAL(programs[0]["shared_memory_bytes"], 132 * 1024);
  CHECK_EQUAL(programs[0]["shared_memory_most_bytes"], 256 << 20);
  CHECK(programs[0]["no_shared_memory"].is_null());
}

// A program of another release, or a hostile one.
void people__unknown_transport() {
  NodeTransports transports = two_programs();
  transports.programs[0].rows = {row(static_cast<Transport>(4711), 2, 2, 1)};
  CHECK(holds(transports_for_people(transports), "UDP  not connected "));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(people__shared_memory),     TEST(people__udp_and_reasons),   TEST(people__no_program_or_no_answer),
      TEST(json__one_object_for_each), TEST(people__unknown_transport), TEST(people__peer_may_not_copy__why),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

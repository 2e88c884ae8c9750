// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ways of connections, from given data.
#include "tools/dapple-info/node_ways.hpp"

#include "provider/member/gid.hpp"
#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple;
using namespace dapple::info;
using soft::Right;
using soft::Way;

namespace {

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

soft::WayRow row(Way way, uint32_t slot, uint8_t last, uint32_t queue_pairs) {
  soft::WayRow made;
  const uint8_t own[] = {10, 0, 0, 1}, peer[] = {10, 0, 0, last};
  soft::ipv4_gid(own, made.source);
  soft::ipv4_gid(peer, made.destination);
  made.way = way;
  made.slot = static_cast<uint16_t>(slot);
  made.queue_pairs = queue_pairs;
  return made;
}

NodeWays two_programs() {
  NodeWays ways;
  ProgramWays one, other;
  one.slot = 1;
  one.process = 100;
  one.ring_bytes = 132 * 1024;
  one.most_ring_bytes = 256 << 20;
  other.slot = 2;
  other.process = 200;
  ways.programs = {one, other};
  return ways;
}

void people__shared_memory() {
  NodeWays ways = two_programs();
  ways.programs[0].rows = {row(Way::kSharedMemory, 2, 2, 17)};
  ways.programs[0].rows[0].right = Right::kGranted;
  const std::string text = ways_for_people(ways);
  CHECK(holds(text, "\n100      132 KiB of at most 256 MiB\n"));
  CHECK(holds(
      text,
      "\n100      17           10.0.0.1  10.0.0.2  200             shared memory  the peer is on this host  yes\n"));
  CHECK(!holds(text, "not listed"));
}

void people__udp_and_reasons() {
  NodeWays ways = two_programs();
  soft::WayRow datagrams;
  datagrams.way = Way::kDatagrams;
  datagrams.queue_pairs = 3;
  ways.programs[0].rows = {row(Way::kOtherHost, 0, 9, 1), datagrams, row(Way::kPeerTakesNone, 2, 2, 1),
                           row(Way::kPeerTakesNone, 7, 3, 1)};
  ways.programs[0].unlisted_queue_pairs = 5;
  ways.programs[1].no_rings = Way::kCapture;
  ways.programs[1].process = 0;
  const std::string text = ways_for_people(ways);
  CHECK(holds(text, "10.0.0.9  -               UDP  another host or network namespace "));
  CHECK(holds(text, "100      3            -         -         -               UDP  unreliable datagrams "));
  CHECK(holds(text, "UDP  the peer takes no packets by shared memory: DAPPLE_PCAP is set "));
  CHECK(holds(text, "UDP  the peer takes no packets by shared memory: no program has its slot "));
  CHECK(holds(text, "\nnot visible  none: DAPPLE_PCAP is set\n"));
  CHECK(holds(text, "\n5 more queue pairs are not listed\n"));
}

void people__peer_may_not_copy__why() {
  NodeWays ways = two_programs();
  ways.programs[0].rows = {row(Way::kSharedMemory, 2, 2, 1), row(Way::kSharedMemory, 3, 3, 1)};
  ways.programs[0].rows[0].right = Right::kRefused;
  ways.programs[0].rows[1].right = static_cast<Right>(4711);
  const std::string text = ways_for_people(ways);
  CHECK(holds(text, "the peer is on this host  no: the kernel does not let the peer trace this process\n"));
  CHECK(holds(text, "the peer is on this host  -\n"));
  const Json list = ways_as_json(ways);
  CHECK_EQUAL(list[0]["peer_may_copy_here"], false);
  CHECK_EQUAL(list[0]["peer_may_copy_here_reason"], "refused");
  CHECK_EQUAL(list[1]["peer_may_copy_here_reason"], "none");
}

void people__no_program_or_no_answer() {
  NodeWays ways;
  CHECK(ways_for_people(ways).empty());
  ways.problem = "refused";
  CHECK_EQUAL(ways_for_people(ways), "Ways of connections: not available: refused\n");
}

void json__one_object_for_each() {
  NodeWays ways = two_programs();
  ways.programs[0].rows = {row(Way::kSharedMemory, 2, 2, 17)};
  ways.programs[0].rows[0].right = Right::kGranted;
  ways.programs[1].rows = {row(Way::kPeerGone, 1, 1, 1)};
  const Json list = ways_as_json(ways);
  CHECK_EQUAL(list.size(), 2);
  CHECK_EQUAL(list[0]["way"], "shared_memory");
  CHECK(list[0]["reason"].is_null());
  CHECK_EQUAL(list[0]["peer_may_copy_here"], true);
  CHECK_EQUAL(list[0]["peer_may_copy_here_reason"], "granted");
  CHECK_EQUAL(list[0]["peer_process"], 200);
  CHECK_EQUAL(list[0]["queue_pairs"], 17);
  CHECK_EQUAL(list[1]["way"], "udp");
  CHECK_EQUAL(list[1]["reason"], "peer_gone");
  CHECK(list[1]["peer_process"].is_null());
  CHECK_EQUAL(list[1]["peer"], "10.0.0.1");
  const Json programs = way_programs_as_json(ways);
  CHECK_EQUAL(programs.size(), 2);
  CHECK_EQUAL(programs[0]["shared_memory_bytes"], 132 * 1024);
  CHECK_EQUAL(programs[0]["shared_memory_most_bytes"], 256 << 20);
  CHECK(programs[0]["no_shared_memory"].is_null());
}

// A program of another release, or a hostile one.
void people__unknown_way() {
  NodeWays ways = two_programs();
  ways.programs[0].rows = {row(static_cast<Way>(4711), 2, 2, 1)};
  CHECK(holds(ways_for_people(ways), "UDP  not connected "));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(people__shared_memory),     TEST(people__udp_and_reasons), TEST(people__no_program_or_no_answer),
      TEST(json__one_object_for_each), TEST(people__unknown_way),     TEST(people__peer_may_not_copy__why),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verdicts of dapple-info --ping.
#include <errno.h>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tools/dapple-info/ping/ping.hpp"

using namespace dapple::info;

namespace {

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

PingFacts answered() {
  PingFacts facts;
  facts.peer = "peer";
  facts.address = "10.0.0.2";
  facts.local = "10.0.0.1";
  facts.netdev = "eth0";
  facts.asked = 3;
  facts.answers_us = {100, 200, 600};
  facts.netdev_mtu = 1500;
  facts.needed = facts.passes = 1104;
  return facts;
}

PingFacts unanswered() {
  PingFacts facts = answered();
  facts.answers_us.clear();
  facts.netdev_mtu = facts.needed = facts.passes = 0;
  return facts;
}

void expect(const PingFacts& facts, PingCode code, const char* part) {
  CHECK_EQUAL(static_cast<int>(judge(facts)), static_cast<int>(code));
  const std::string text = ping_for_people(facts);
  CHECK(holds(text, part));
  CHECK(text.back() == '\n');
  if (!holds(text, part)) std::cout << text;
}

void verdict__answers() {
  expect(answered(), PingCode::kGood, "0.100 ms at least, 0.300 ms on average, 0.600 ms at most");
  expect(answered(), PingCode::kGood, "RoCE works between 10.0.0.1 and 10.0.0.2.");
  PingFacts facts = answered();
  facts.answers_us.pop_back();
  expect(facts, PingCode::kGood, "Some packets get lost");
}

void verdict__small_mtu() {
  PingFacts facts = answered();
  facts.passes = 600;
  expect(facts, PingCode::kMtu, "Echo requests of more than 600 bytes get no answer");
  expect(facts, PingCode::kMtu, "path MTU of 512, or lower the MTU of eth0 to 600");
  facts.mtu_told = true;
  facts.mtu_teller = "10.0.0.254";
  expect(facts, PingCode::kMtu, "10.0.0.254 says that packets of more than 600 bytes");
  facts.passes = 300;
  CHECK(!holds(ping_for_people(facts), "path MTU"));
}

void verdict__nothing() {
  PingFacts facts = unanswered();
  expect(facts, PingCode::kSilence, "a firewall that drops UDP port 4791");
  facts.echo = Answered::kYes;
  expect(facts, PingCode::kSilence, "The host itself answers");
  facts.echo = Answered::kNo;
  expect(facts, PingCode::kSilence, "it may be off");
  facts.prohibited = true;
  facts.teller = "10.0.0.254";
  expect(facts, PingCode::kSilence, "A firewall forbids it (reported by 10.0.0.254)");
  facts = unanswered();
  facts.port_closed = true;
  facts.teller = "10.0.0.2";
  expect(facts, PingCode::kPortClosed,
         "10.0.0.2 is up, but has no RoCE: UDP port 4791 is closed (reported by 10.0.0.2)");
  facts = unanswered();
  facts.unreachable = true;
  facts.teller = "this host";
  expect(facts, PingCode::kUnreachable, "10.0.0.2 cannot be reached (reported by this host)");
  facts = unanswered();
  facts.route_error = ENETUNREACH;
  expect(facts, PingCode::kUnreachable, "There is no route to 10.0.0.2: Network is unreachable");
  facts = unanswered();
  facts.name_problem = "Name or service not known";
  expect(facts, PingCode::kName, "peer cannot be resolved: Name or service not known");
}

void verdict__changes() {
  PingFacts facts = unanswered();
  facts.bad_icrc = 3;
  expect(facts, PingCode::kChanged, "0 of 3 questions were answered, 3 with a change on the way");
  expect(facts, PingCode::kChanged, "wrong ICRC");
  facts.changed_port = 1;
  expect(facts, PingCode::kChanged, "The source port of answers was changed");
  facts.changed_address = 1;
  facts.changed_to = "10.0.0.9";
  expect(facts, PingCode::kChanged, "come from 10.0.0.9 instead of 10.0.0.2");
}

void verdict__this_end() {
  PingFacts facts = unanswered();
  facts.deaf = "dappled has it.";
  expect(facts, PingCode::kHere, "answers cannot be received here.\ndappled has it.");
  // An error that came back has priority.
  facts.prohibited = true;
  facts.teller = "10.0.0.254";
  expect(facts, PingCode::kSilence, "A firewall forbids it (reported by 10.0.0.254)");
  facts.port_closed = true;
  expect(facts, PingCode::kPortClosed, "closed");
  facts.here_problem = "No socket.";
  expect(facts, PingCode::kHere, "No socket.");
}

void json__has_the_result() {
  const std::string json = dapple::document_of(ping_as_json(answered()));
  CHECK(holds(json, "\"result\": \"good\""));
  CHECK(holds(json, "\"exit_status\": 0"));
  CHECK(holds(json, "\"needed_bytes\": 1104"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(verdict__answers), TEST(verdict__small_mtu), TEST(verdict__nothing),
      TEST(verdict__changes), TEST(verdict__this_end),  TEST(json__has_the_result),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

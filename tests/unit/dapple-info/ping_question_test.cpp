// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The packets of dapple-info --ping, and the readings of answers.
#include <initializer_list>

#include "tests/unit/dapple-info/roce_peer.hpp"
#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple;
using namespace dapple::info;

namespace {

constexpr uint16_t kPort = 50000, kPeersPort = 55410;
constexpr uint32_t kRequest = 0x12345678;
constexpr uint64_t kTransaction = 0xFEDCBA9876543210;

Gid16 ipv4(uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
}
Gid16 ipv6(uint8_t last) {
  return {0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

const Ends kEnds4{ipv4(1), ipv4(2)};
const Ends kEnds6{ipv6(1), ipv6(2)};

std::vector<std::byte> answer(const Ends& ends, uint16_t port, uint16_t identification = 0) {
  const std::vector<std::byte> asked = question(ends, kPort, kRequest, kTransaction);
  return test::answer_to(asked, ends.peer, ends.local, port, identification);
}

Reading read(const std::vector<std::byte>& packet, const Ends& ends, const Gid16& from) {
  return read_answer(packet, ends, from, kPeersPort, kRequest, kTransaction);
}

void question__has_the_icrc_of_its_ends() {
  for (const Ends& ends : {kEnds4, kEnds6}) {
    const std::vector<std::byte> asked = question(ends, kPort, kRequest, kTransaction);
    CHECK_EQUAL(asked.size(), 12 + 8 + 256 + 4);
    CHECK(test::whole(asked, ends.local, ends.peer, kPort));
    CHECK(!test::whole(asked, ends.local, ends.peer, kPort + 1));
  }
}

void filler__is_as_long_as_wanted_and_nobodys() {
  for (const size_t size : {336, 1104, 4176}) {
    CHECK_EQUAL(filler(kEnds4, kPort, size).size() + 28, size);
    CHECK_EQUAL(filler(kEnds6, kPort, size).size() + 48, size);
  }
  const std::vector<std::byte> packet = filler(kEnds4, kPort, 1104);
  CHECK(test::whole(packet, kEnds4.local, kEnds4.peer, kPort));
  roce::Packet parsed;
  CHECK(roce::parse(std::span(packet).first(packet.size() - 4), parsed) == roce::ParseError::kNone);
  CHECK_EQUAL(parsed.headers.destination_qpn, 0xFFFFFEU);
}

void answer__whole__is_good() {
  CHECK(read(answer(kEnds4, kPeersPort), kEnds4, kEnds4.peer) == Reading::kGood);
  CHECK(read(answer(kEnds6, kPeersPort), kEnds6, kEnds6.peer) == Reading::kGood);
  // The kernel's rxe increments identifications.
  CHECK(read(answer(kEnds4, kPeersPort, 0xBEEF), kEnds4, kEnds4.peer) == Reading::kGood);
}

void answer__changed_on_the_way__is_told() {
  CHECK(read(answer(kEnds4, 1234), kEnds4, kEnds4.peer) == Reading::kPort);
  CHECK(read(answer(kEnds6, 1234), kEnds6, kEnds6.peer) == Reading::kPort);
  CHECK(read(answer(kEnds4, kPeersPort), kEnds4, ipv4(9)) == Reading::kAddress);
  // The peer knows this end by another address.
  CHECK(read(test::answer_to(question(kEnds6, kPort, kRequest, kTransaction), kEnds6.peer, ipv6(9), kPeersPort), kEnds6,
             kEnds6.peer) == Reading::kBadIcrc);
  std::vector<std::byte> damaged = answer(kEnds6, kPeersPort);
  damaged.back() ^= std::byte{1};
  CHECK(read(damaged, kEnds6, kEnds6.peer) == Reading::kBadIcrc);
}

void answer__to_another_question__is_foreign() {
  const std::vector<std::byte> good = answer(kEnds4, kPeersPort);
  CHECK(read_answer(good, kEnds4, kEnds4.peer, kPeersPort, kRequest + 1, kTransaction) == Reading::kForeign);
  CHECK(read_answer(good, kEnds4, kEnds4.peer, kPeersPort, kRequest, kTransaction + 1) == Reading::kForeign);
  CHECK(read(question(kEnds4, kPort, kRequest, kTransaction), kEnds4, kEnds4.peer) == Reading::kForeign);
  for (size_t size = 0; size < good.size(); size++) {
    CHECK(read({good.begin(), good.begin() + static_cast<long>(size)}, kEnds4, kEnds4.peer) == Reading::kForeign);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(question__has_the_icrc_of_its_ends),
      TEST(filler__is_as_long_as_wanted_and_nobodys),
      TEST(answer__whole__is_good),
      TEST(answer__changed_on_the_way__is_told),
      TEST(answer__to_another_question__is_foreign),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

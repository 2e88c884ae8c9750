// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/same_host/reference.hpp"

#include <stdint.h>
#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint32_t kMaxPackets = 1 << 22;

// The largest and the smallest references that a writer of ours makes.
RingReference largest() {
  RingReference made = {};
  made.length = 10;
  made.packets = kMaxPackets;
  made.headers = dapple::roce::kMaxHeaderSize;
  made.source_count = RingReference::kMaxSources;
  for (uint32_t i = 0; i < made.source_count; i++) made.sources[i].length = 1 + i;
  return made;
}

bool takes(const RingReference& made, size_t size = kReferringPacket) {
  std::byte packet[kReferringPacket + 1] = {};
  memcpy(packet + kReferenceOffset, &made, sizeof made);
  RingReference taken;
  const bool good = take_reference({packet, size}, taken);
  assert_true(!good || memcmp(&taken, &made, sizeof made) == 0);
  return good;
}

void take_reference__at_its_limits__is_taken(void**) {
  RingReference made = largest();
  assert_true(takes(made));
  made.headers = dapple::roce::kBthSize;
  made.packets = 0;
  made.source_count = 0;
  made.length = 0;
  assert_true(takes(made));
}

void take_reference__beyond_a_limit__is_not(void**) {
  RingReference made = largest();
  assert_false(takes(made, kReferringPacket - 1));
  assert_false(takes(made, kReferringPacket + 1));
  made.headers++;
  assert_false(takes(made));
  made.headers = dapple::roce::kBthSize - 1;
  assert_false(takes(made));
  made = largest();
  made.packets++;
  assert_false(takes(made));
  made = largest();
  made.source_count++;
  assert_false(takes(made));
  made = largest();
  made.length++;
  assert_false(takes(made));
  made.length -= 2;
  assert_false(takes(made));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take_reference__at_its_limits__is_taken),
      cmocka_unit_test(take_reference__beyond_a_limit__is_not),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/counts.hpp"

#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::face;

namespace {

std::string text_in(std::span<const CounterFile> files, const char* name, const DeviceCounts& counts) {
  for (const CounterFile& file : files) {
    if (strcmp(file.name, name) == 0) return counter_text(file, counts);
  }
  return "absent";
}

void port_counters__bytes__are_words(void**) {
  DeviceCounts counts;
  counts.sent_bytes = 4002;
  counts.received_packets = 7;
  assert_string_equal(text_in(port_counters(), "port_xmit_data", counts).c_str(), "1000\n");
  assert_string_equal(text_in(port_counters(), "port_rcv_packets", counts).c_str(), "7\n");
  assert_string_equal(text_in(port_counters(), "symbol_error", counts).c_str(), "0\n");
}

void hardware_counters__drivers__have_their_own(void**) {
  DeviceCounts counts;
  counts.duplicates = 5;
  counts.sent_packets = UINT64_MAX;
  assert_string_equal(text_in(hardware_counters(""), "sent_pkts", counts).c_str(), "18446744073709551615\n");
  assert_string_equal(text_in(hardware_counters(""), "duplicate_request", counts).c_str(), "5\n");
  assert_string_equal(text_in(hardware_counters(""), "lifespan", counts).c_str(), "10\n");
  assert_string_equal(text_in(hardware_counters("mlx5_core"), "duplicate_request", counts).c_str(), "5\n");
  assert_string_equal(text_in(hardware_counters("mlx5_core"), "sent_pkts", counts).c_str(), "absent");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(port_counters__bytes__are_words),
      cmocka_unit_test(hardware_counters__drivers__have_their_own),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

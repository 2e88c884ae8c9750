// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/settings.hpp"

#include <cstdlib>
#include <initializer_list>

#include "tests/unit/udapl-core/captured.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/log.hpp"

using namespace dapple::udapl;

namespace {

struct Variable {
  const char* name;
  long low;
  long high;
  long (*get)(const Settings&);
  long fallback;
};

const Variable kVariables[] = {
    {"DAPL_ACK_RETRY", 0, 7, [](const Settings& s) -> long { return s.retry_count; }, 7},
    {"DAPL_RNR_RETRY", 0, 7, [](const Settings& s) -> long { return s.rnr_retry_count; }, 7},
    {"DAPL_RNR_TIMER", 0, 31, [](const Settings& s) -> long { return s.min_rnr_timer; }, 12},
    {"DAPL_ACK_TIMER", 0, 31, [](const Settings& s) -> long { return s.ack_timeout; }, -1},
    {"DAPL_TCLASS", 0, 255, [](const Settings& s) -> long { return s.traffic_class; }, -1},
    {"DAPL_CM_TOS", 0, 255, [](const Settings& s) -> long { return s.traffic_class; }, -1},
    {"DAPL_IB_SL", 0, 15, [](const Settings& s) -> long { return s.service_level; }, -1},
    {"DAPL_HOP_LIMIT", 0, 255, [](const Settings& s) -> long { return s.hop_limit; }, -1},
    {"DAPL_WR_MAX", 1, INT32_MAX, [](const Settings& s) -> long { return s.max_dtos; }, UINT32_MAX},
    {"DAPL_MAX_INLINE", 0, 65536, [](const Settings& s) -> long { return s.max_inline_bytes; }, 64},
    {"DAPL_CM_ARP_TIMEOUT_MS", 1, 3'600'000, [](const Settings& s) -> long { return s.arp_timeout_ms; }, 4000},
    {"DAPL_CM_ARP_RETRY_COUNT", 0, 1000, [](const Settings& s) -> long { return s.arp_retries; }, 3},
    {"DAPL_CM_ROUTE_TIMEOUT_MS", 1, 3'600'000, [](const Settings& s) -> long { return s.route_timeout_ms; }, 4000},
    {"DAPL_CM_ROUTE_RETRY_COUNT", 0, 1000, [](const Settings& s) -> long { return s.route_retries; }, 3},
};

void clear() {
  for (const Variable& variable : kVariables) unsetenv(variable.name);
  unsetenv("DAPL_DBG_TYPE");
}

void expect(const Variable& variable, const std::string& text, long expected, bool accepted) {
  clear();
  setenv(variable.name, text.c_str(), 1);
  Settings settings;
  const std::string said = captured([&] { settings = Settings::from_environment(); });
  CHECK_EQUAL(variable.get(settings), expected);
  CHECK_EQUAL(said.empty(), accepted);
  if (!accepted) {
    CHECK(is_one_line(said));
    CHECK(said.find(variable.name) != std::string::npos);
  }
  // No other setting has changed. Two variables set the traffic class, so these are left out, together with all whose
  // default is -1.
  for (const Variable& other : kVariables) {
    if (&other == &variable || (other.fallback == -1 && variable.fallback == -1)) continue;
    CHECK_EQUAL(other.get(settings), other.fallback);
  }
}

void settings__defaults() {
  clear();
  Settings settings;
  CHECK_EQUAL(captured([&] { settings = Settings::from_environment(); }), "");
  for (const Variable& variable : kVariables) CHECK_EQUAL(variable.get(settings), variable.fallback);
}

void settings__values_in_range() {
  for (const Variable& variable : kVariables) {
    expect(variable, std::to_string(variable.low), variable.low, true);
    expect(variable, std::to_string(variable.high), variable.high, true);
    expect(variable, "0x7", 7, true);
  }
}

void settings__bad_values_say_so_and_change_nothing() {
  for (const Variable& variable : kVariables) {
    expect(variable, std::to_string(variable.low - 1), variable.fallback, false);
    expect(variable, std::to_string(variable.high + 1), variable.fallback, false);
    for (const char* text : {"seven", "7x", "7 ", "1.5", "99999999999999999999999", "-99999999999999999999999"}) {
      expect(variable, text, variable.fallback, false);
    }
    expect(variable, "", variable.fallback, true);
  }
}

void settings__tos_before_tclass() {
  clear();
  setenv("DAPL_TCLASS", "1", 1);
  setenv("DAPL_CM_TOS", "2", 1);
  CHECK_EQUAL(Settings::from_environment().traffic_class, 2);
  clear();
}

void settings__mtu_is_one_of_five_sizes() {
  clear();
  CHECK_EQUAL(Settings::from_environment().path_mtu, IBV_MTU_4096);
  setenv("DAPL_IB_MTU", "1024", 1);
  CHECK_EQUAL(Settings::from_environment().path_mtu, IBV_MTU_1024);
  for (const char* bad : {"1000", "128", "8192", "x"}) {
    setenv("DAPL_IB_MTU", bad, 1);
    const std::string said = captured([] { CHECK_EQUAL(Settings::from_environment().path_mtu, IBV_MTU_4096); });
    CHECK(is_one_line(said));
  }
  unsetenv("DAPL_IB_MTU");
}

void log__types_and_destinations() {
  clear();
  const auto said = [] { return captured([] { log(kLogConnections, "lost %d", 1); }); };
  CHECK_EQUAL(said(), "");
  for (const char* type : {"2", "0x8", "0x80001"}) {
    setenv("DAPL_DBG_TYPE", type, 1);
    CHECK_EQUAL(said(), "dapple: lost 1\n");
  }
  setenv("DAPL_DBG_DEST", "2", 1);
  CHECK_EQUAL(said(), "");
  setenv("DAPL_DBG_DEST", "3", 1);
  CHECK_EQUAL(said(), "dapple: lost 1\n");
  unsetenv("DAPL_DBG_DEST");
  clear();
}

void log_error__silent_without_the_error_bit() {
  clear();
  const auto said = [] { return captured([] { log_error("%s %d", "said", 1); }); };
  CHECK_EQUAL(said(), "dapple: said 1\n");
  setenv("DAPL_DBG_TYPE", "0x2", 1);
  CHECK_EQUAL(said(), "");
  setenv("DAPL_DBG_TYPE", "0xffff", 1);
  CHECK_EQUAL(said(), "dapple: said 1\n");
  clear();
}

void log_error__a_long_line_is_cut_not_split() {
  clear();
  const std::string said = captured([] { log_error("%s", std::string(5000, 'x').c_str()); });
  CHECK(is_one_line(said));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(settings__defaults),
      TEST(settings__values_in_range),
      TEST(settings__bad_values_say_so_and_change_nothing),
      TEST(settings__tos_before_tclass),
      TEST(settings__mtu_is_one_of_five_sizes),
      TEST(log__types_and_destinations),
      TEST(log_error__silent_without_the_error_bit),
      TEST(log_error__a_long_line_is_cut_not_split),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/settings.hpp"

#include <fmt/format.h>

namespace dapple::info {
namespace {

struct Setting {
  const char* provider::Settings::*value;
  const char* variable;
};

constexpr Setting kSettings[] = {
#define DAPPLE_SETTING(member, variable) {&provider::Settings::member, variable},
    DAPPLE_SETTINGS(DAPPLE_SETTING)
#undef DAPPLE_SETTING
};

}  // namespace

std::string settings_for_people(const provider::Settings& settings) {
  std::string text;
  for (const Setting& each : kSettings) {
    if (const char* value = settings.*each.value) text += fmt::format("  {}={}\n", each.variable, value);
  }
  return text.empty() ? "" : "Variables of dapple in this environment:\n" + text;
}

Json settings_as_json(const provider::Settings& settings) {
  Json json = Json::object();
  for (const Setting& each : kSettings) {
    if (const char* value = settings.*each.value) json[each.variable] = value;
  }
  return json;
}

}  // namespace dapple::info

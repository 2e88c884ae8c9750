// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/automatic_entries.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace dapple::registry {
namespace {

/// Takes the next word off the text; empty at the end of the text.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

bool is_usable(const RdmaPort& port) {
  return port.is_active && !port.addresses.empty();
}

}  // namespace

bool names_port(const ConfEntry& line, const RdmaPort& port) {
  std::string_view params = line.ia_params;
  const std::string_view where = take_word(params), number = take_word(params);
  if (where.empty()) return false;
  if (where == port.device && number == std::to_string(port.number)) return true;
  return where == port.netdev || std::find(port.addresses.begin(), port.addresses.end(), where) != port.addresses.end();
}

bool names_no_usable_port(const ConfEntry& line, const std::vector<RdmaPort>& ports) {
  std::string_view params = line.ia_params;
  take_word(params);
  const std::string_view number = take_word(params);
  unsigned value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc{}) return false;
  return std::none_of(ports.begin(), ports.end(),
                      [&](const RdmaPort& port) { return is_usable(port) && names_port(line, port); });
}

std::vector<AutomaticEntry> automatic_entries(const std::vector<RdmaPort>& ports, const std::vector<ConfEntry>& lines,
                                              const AutomaticStyle& style) {
  std::vector<AutomaticEntry> made;
  const auto make = [&](const std::string& name, const std::string& netdev, bool is_listed) {
    for (const bool is_thread_safe : {false, true}) {
      const ConfEntry entry{
          .ia_name = name,
          .api = style.api,
          .is_thread_safe = is_thread_safe,
          .is_default = true,
          .library = style.library,
          .provider_id = style.provider_id,
          .provider = style.provider,
          .ia_params = netdev + " 0",
          .platform_params = {},
          .line = 0,
      };
      made.push_back({entry, is_listed && !is_thread_safe});
    }
  };
  for (size_t i = 0; i < ports.size(); i++) {
    const RdmaPort& port = ports[i];
    if (port.netdev.empty()) continue;
    const std::string by_device = "ofa-v2-" + port.device + "-" + std::to_string(port.number);
    // If two devices share a network device, the connection manager chooses between them for every request.
    const bool first_of_netdev = std::none_of(ports.begin(), ports.begin() + static_cast<ptrdiff_t>(i),
                                              [&](const RdmaPort& other) { return other.netdev == port.netdev; });
    const bool has_line =
        std::any_of(lines.begin(), lines.end(), [&](const ConfEntry& line) { return names_port(line, port); });
    if (first_of_netdev) make("ofa-v2-" + port.netdev, port.netdev, is_usable(port) && !has_line);
    for (const char* suffix : {"", "s", "u"}) make(by_device + suffix, port.netdev, false);
  }
  if (style.first_port) {
    const auto has_netdev = [](const RdmaPort& port) { return !port.netdev.empty(); };
    auto first = std::find_if(ports.begin(), ports.end(),
                              [&](const RdmaPort& port) { return has_netdev(port) && is_usable(port); });
    if (first == ports.end()) first = std::find_if(ports.begin(), ports.end(), has_netdev);
    if (first != ports.end()) make(style.first_port, first->netdev, false);
  }
  return made;
}

}  // namespace dapple::registry

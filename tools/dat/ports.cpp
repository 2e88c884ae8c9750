// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dat/ports.hpp"

#include <algorithm>
#include <utility>

#include "tools/dat/silence.hpp"
#include "udapl/registry/configuration/automatic_entries.hpp"
#include "udapl/registry/configuration/conf_file.hpp"

namespace dapple::tools {
namespace {

std::string name_of(const registry::RdmaPort& port, const std::vector<registry::ConfEntry>& lines) {
  if (port.netdev.empty()) return {};
  const auto is_for = [&port](const registry::ConfEntry& line) {
    return line.api.major == 2 && !line.is_thread_safe && line.is_default && registry::names_port(line, port);
  };
  const auto line = std::find_if(lines.begin(), lines.end(), is_for);
  return line == lines.end() ? "ofa-v2-" + port.netdev : line->ia_name;
}

bool is_meant(const registry::RdmaPort& port, const std::string& device) {
  return device == port.device || device == port.netdev ||
         std::find(port.addresses.begin(), port.addresses.end(), device) != port.addresses.end();
}

std::vector<registry::ConfEntry> lines_here() {
  const Silence silence;
  return registry::load_configuration(registry::default_search(), {2, 2}).entries;
}

}  // namespace

std::vector<NamedPort> named_ports(std::vector<registry::RdmaPort> ports,
                                   const std::vector<registry::ConfEntry>& lines) {
  std::vector<NamedPort> named;
  for (registry::RdmaPort& port : ports) {
    std::string name = name_of(port, lines);
    named.push_back({std::move(port), std::move(name)});
  }
  return named;
}

std::vector<NamedPort> named_ports() {
  return named_ports(registry::rdma_ports(), lines_here());
}

std::string ia_of(const std::vector<NamedPort>& ports, const std::string& device) {
  for (const bool active : {true, false}) {
    for (const NamedPort& named : ports) {
      if (named.port.is_active == active && !named.ia.empty() && is_meant(named.port, device)) return named.ia;
    }
  }
  return {};
}

bool is_of_active_port(const std::vector<NamedPort>& ports, const std::string& ia) {
  return std::any_of(ports.begin(), ports.end(), [&ia](const NamedPort& named) {
    return named.ia == ia && named.port.is_active && !named.port.addresses.empty();
  });
}

bool is_name_here(const std::string& ia) {
  const std::vector<registry::ConfEntry> lines = lines_here();
  const std::vector<registry::AutomaticEntry> made = registry::automatic_entries(registry::rdma_ports(), lines);
  return std::any_of(lines.begin(), lines.end(), [&ia](const auto& line) { return line.ia_name == ia; }) ||
         std::any_of(made.begin(), made.end(), [&ia](const auto& each) { return each.entry.ia_name == ia; });
}

std::string names_of(const std::vector<NamedPort>& ports) {
  std::string text;
  for (const NamedPort& named : ports) {
    if (!named.port.is_active || named.ia.empty()) continue;
    text += (text.empty() ? "" : ", ") + named.ia + " (" + named.port.device + ", " + named.port.netdev + ")";
  }
  return text;
}

}  // namespace dapple::tools

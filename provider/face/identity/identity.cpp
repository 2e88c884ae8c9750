// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/identity.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cassert>

#include "provider/face/identity/cpu_list.hpp"
#include "provider/face/identity/profile.hpp"
#include "provider/face/identity/profile_file.hpp"
#include "provider/face/identity/profile_keys.hpp"
#include "provider/protocol/identity_text.hpp"

namespace dapple::face {
namespace {

constexpr uint32_t kPciBuses = 256;
// Between two devices, so that each has the bus of its root port, too.
constexpr uint32_t kBusDistance = 16;

// The text before the next comma; takes both away.
std::string_view take_word(std::string_view& rest) {
  const size_t end = rest.find(',');
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return word;
}

// The word and those after it that continue its value.
std::string_view take_setting(std::string_view& rest) {
  const char* const begin = rest.data();
  std::string_view last = take_word(rest);
  while (!rest.empty() && rest.substr(0, rest.find(',')).find('=') == rest.npos) last = take_word(rest);
  return {begin, static_cast<size_t>(last.data() + last.size() - begin)};
}

// Limits of objects that the device lacks.
void settle(soft::DeviceAttributes& attributes) {
  if ((attributes.features & soft::kFeatureSrq) == 0)
    attributes.max_srq = attributes.max_srq_wr = attributes.max_srq_sge = 0;
  if ((attributes.features & soft::kFeatureMemoryWindows) == 0) attributes.max_mw = 0;
  if ((attributes.features & soft::kFeatureMulticast) == 0)
    attributes.max_mcast_grp = attributes.max_mcast_qp_attach = attributes.max_total_mcast_qp_attach = 0;
}

// The number after the colon.
bool read_count(const soft::IdentityName& name, Identity& identity, soft::Problem& problem) {
  soft::Problem reason;
  if (set_key("devices", name.count, identity, reason)) return true;
  const std::string_view profile = name.profile.empty() || is_path(name.profile) ? "connectx7" : name.profile;
  problem.set(EINVAL, "the number of devices after the colon is 1 to %u, not \"%.*s\"; for example %.*s:8",
              soft::kMaxRails, std::min(shown(name.count), 24), name.count.data(), shown(profile), profile.data());
  return false;
}

}  // namespace

bool read_identity(std::string_view spec, ProfileSource& source, Identity& identity, soft::Problem& problem) {
  identity = {};
  const soft::IdentityName name = soft::identity_name(spec);
  const std::string_view word = take_word(spec), profile = name.profile;
  if (word.empty() || profile.find('=') != word.npos) {
    problem.set(EINVAL, "an identity begins with the name of a profile, not with \"%.*s\"", shown(word), word.data());
    return false;
  }
  std::string_view text;
  if (!profile.empty() && !source.read(profile, text, problem)) return false;
  if (!profile.empty() && !read_profile(text, profile, identity, problem)) return false;
  if (name.has_count && !read_count(name, identity, problem)) return false;
  while (!spec.empty()) {
    const std::string_view setting = take_setting(spec);
    if (!read_setting(setting, identity, problem)) return false;
  }
  settle(identity.attributes);
  return true;
}

void apply(const Identity& identity, soft::DeviceInfo& device) {
  device.rails = static_cast<uint8_t>(identity.rails.count);
  const uint32_t number = soft::number_of(device);
  const char* const place = strstr(identity.name_pattern, "%d");
  assert(place != nullptr && strlen(identity.name_pattern) <= kMaxNamePattern);
  snprintf(device.name, sizeof device.name, "%.*s%u%s", static_cast<int>(place - identity.name_pattern),
           identity.name_pattern, number, place + 2);
  soft::DeviceAttributes& attributes = device.attributes;
  attributes = identity.attributes;
  if (identity.numa_node_count != 0) attributes.numa_node = identity.numa_nodes[number % identity.numa_node_count];
  if (attributes.has_pci == 0) return;
  // One function for each device, as of cards with one port.
  const uint32_t bus = attributes.pci_bus + number * kBusDistance;
  attributes.pci_domain += bus / kPciBuses;
  attributes.pci_bus = bus % kPciBuses;
  if (identity.has_cpu_list == 0) read_cpu_list(attributes.numa_node, attributes.cpu_list);
}

}  // namespace dapple::face

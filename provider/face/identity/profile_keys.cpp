// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/profile_keys.hpp"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstddef>

#include "provider/face/identity/nearest.hpp"
#include "provider/face/identity/profile.hpp"
#include "provider/face/identity/rate.hpp"

namespace dapple::face {
namespace {

using soft::DeviceAttributes;

constexpr DeviceAttributes kServed;

// A function takes the value, and describes in `problem` what it would take.
struct Key {
  std::string_view name;
  bool (*set)(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem);
  size_t offset = 0;     // in DeviceAttributes
  uint64_t least = 0;    // of a number
  uint64_t most = 0;     // of a number
  uint64_t served = 0;   // the software device's limit; 0: the number is no limit
  uint32_t feature = 0;  // of a feature
};

bool refuse(soft::Problem& problem, const Key& key, std::string_view value, const char* wanted) {
  problem.set(EINVAL, "%s is %s, not %.*s", key.name.data(), wanted, std::min(shown(value), 24), value.data());
  return false;
}

// Decimal, or hexadecimal after 0x.
bool number_of(std::string_view text, uint64_t& number) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, hexadecimal ? 16 : 10);
  return error == std::errc() && stop == end && !text.empty();
}

bool ranged(const Key& key, std::string_view value, uint64_t& number, soft::Problem& problem) {
  if (number_of(value, number) && number >= key.least && number <= key.most) return true;
  char range[64];
  const bool hexadecimal = key.served == 0 && key.most > 255;
  snprintf(range, sizeof range, hexadecimal ? "0x%llx to 0x%llx" : "%llu to %llu",
           static_cast<unsigned long long>(key.least), static_cast<unsigned long long>(key.most));
  return refuse(problem, key, value, range);
}

template <typename Number>
bool set_number(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  uint64_t number = 0;
  if (!ranged(key, value, number, problem)) return false;
  if (key.served != 0) number = std::min(number, key.served);
  const auto stored = static_cast<Number>(number);
  memcpy(reinterpret_cast<char*>(&identity.attributes) + key.offset, &stored, sizeof stored);
  return true;
}

bool set_max_sge(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  uint64_t number = 0;
  if (!ranged(key, value, number, problem)) return false;
  const auto stored = static_cast<uint32_t>(std::min(number, key.served));
  identity.attributes.max_send_sge = identity.attributes.max_recv_sge = stored;
  return true;
}

bool is_printable(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < '\x7F'; });
}

bool set_text(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (value.size() >= soft::kAttributeSize || !is_printable(value))
    return refuse(problem, key, value, "a text of at most 63 ASCII characters");
  char* const to = reinterpret_cast<char*>(&identity.attributes) + key.offset;
  memset(to, 0, soft::kAttributeSize);
  std::copy(value.begin(), value.end(), to);
  return true;
}

// Files and udev's rules have these names.
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// A folder has this name. An empty one is none.
bool set_driver(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (!std::all_of(value.begin(), value.end(), is_name) || value.starts_with('.'))
    return refuse(problem, key, value, "the name of a driver, such as mlx5_core");
  return set_text(key, value, identity, problem);
}

bool set_name(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  const size_t place = value.find("%d");
  const bool good = place != value.npos && place > 0 && value.size() <= kMaxNamePattern && value[0] != '.' &&
                    std::all_of(value.begin(), value.begin() + static_cast<ptrdiff_t>(place), is_name) &&
                    std::all_of(value.begin() + static_cast<ptrdiff_t>(place) + 2, value.end(), is_name);
  if (!good) return refuse(problem, key, value, "a name with one %d for the number of the device, such as mlx5_%d");
  memset(identity.name_pattern, 0, sizeof identity.name_pattern);
  std::copy(value.begin(), value.end(), identity.name_pattern);
  return true;
}

bool set_devices(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  uint64_t count = 0;
  if (!ranged(key, value, count, problem)) return false;
  identity.rails.count = static_cast<uint32_t>(count);
  return true;
}

bool set_netdev(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  constexpr size_t kMax = sizeof identity.rails.netdev - 1;
  if (value.empty() || value.size() > kMax || value.find_first_of("/ \t:") != value.npos)
    return refuse(problem, key, value, "the name of a network device, such as eth0");
  identity.rails.count = std::max(identity.rails.count, 1U);
  memset(identity.rails.netdev, 0, sizeof identity.rails.netdev);
  // lo has no name here, so that two identities with it are equal.
  if (value != "lo") std::copy(value.begin(), value.end(), identity.rails.netdev);
  return true;
}

bool set_feature(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (value != "yes" && value != "no") return refuse(problem, key, value, "yes or no");
  uint32_t& features = identity.attributes.features;
  features = value == "yes" ? features | key.feature : features & ~key.feature;
  return true;
}

bool set_gid_twins(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (value != "yes" && value != "no") return refuse(problem, key, value, "yes or no");
  identity.attributes.gid_twins = value == "yes" ? 1 : 0;
  return true;
}

bool set_atomics(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  uint32_t& atomics = identity.attributes.atomics;
  if (value == "none") {
    atomics = soft::kAtomicsNone;
  } else if (value == "hca") {
    atomics = soft::kAtomicsHca;
  } else if (value == "global") {
    atomics = soft::kAtomicsGlobal;
  } else {
    return refuse(problem, key, value, "none, hca or global");
  }
  return true;
}

bool set_too_long(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (value != "completes" && value != "refused") return refuse(problem, key, value, "completes or refused");
  identity.attributes.too_long = value == "completes" ? soft::kTooLongCompletes : soft::kTooLongRefused;
  return true;
}

bool set_rate(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (find_rate(value, identity.attributes)) return true;
  char rates[96];
  list_rates(rates);
  return refuse(problem, key, value, rates);
}

bool set_pci(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  DeviceAttributes& attributes = identity.attributes;
  if (value == "none") {
    attributes.has_pci = 0;
    return true;
  }
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  int read = 0;
  char text[32] = {};
  if (value.size() < sizeof text) std::copy(value.begin(), value.end(), text);
  if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &read) != 4 || text[read] != '\0' ||
      slot > 31 || function > 7) {
    return refuse(problem, key, value, "none, or an address such as 0000:17:00.0");
  }
  attributes.has_pci = 1;
  attributes.pci_domain = domain;
  attributes.pci_bus = bus;
  attributes.pci_slot = slot;
  attributes.pci_function = function;
  return true;
}

bool set_link_speed(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  constexpr struct {
    std::string_view text;
    uint32_t tenths;
  } kSpeeds[] = {{"2.5", 25}, {"5", 50}, {"8", 80}, {"16", 160}, {"32", 320}, {"64", 640}};
  for (const auto& speed : kSpeeds) {
    if (value != speed.text) continue;
    identity.attributes.pci_link_speed = speed.tenths;
    return true;
  }
  return refuse(problem, key, value, "2.5, 5, 8, 16, 32 or 64 (GT/s)");
}

bool set_numa(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  uint32_t count = 0;
  int32_t nodes[kMaxNumaNodes] = {};
  while (!value.empty()) {
    const size_t end = value.find(',');
    const std::string_view word = trimmed(value.substr(0, end));
    value.remove_prefix(end == value.npos ? value.size() : end + 1);
    uint64_t node = 0;
    const bool none = word == "-1";
    if (count == kMaxNumaNodes || !(none || (number_of(word, node) && node <= 1023)))
      return refuse(problem, key, word, "at most 16 NUMA nodes with commas between them, each -1 or 0 to 1023");
    nodes[count++] = none ? -1 : static_cast<int32_t>(node);
  }
  if (count == 0) return refuse(problem, key, value, "at least one NUMA node");
  identity.numa_node_count = count;
  memcpy(identity.numa_nodes, nodes, sizeof nodes);
  return true;
}

bool set_cpus(const Key& key, std::string_view value, Identity& identity, soft::Problem& problem) {
  if (value.size() >= soft::kCpuListSize || value.empty() || value.find_first_not_of("0123456789,-") != value.npos)
    return refuse(problem, key, value, "a list of CPUs such as 0-15,32-47");
  memset(identity.attributes.cpu_list, 0, sizeof identity.attributes.cpu_list);
  std::copy(value.begin(), value.end(), identity.attributes.cpu_list);
  identity.has_cpu_list = 1;
  return true;
}

constexpr Key text(std::string_view name, size_t offset) {
  return {.name = name, .set = set_text, .offset = offset};
}
constexpr Key number(std::string_view name, size_t offset, uint64_t most) {
  return {.name = name, .set = set_number<uint32_t>, .offset = offset, .most = most};
}
constexpr Key limit(std::string_view name, size_t offset, uint64_t least, uint64_t served) {
  return {
      .name = name, .set = set_number<uint32_t>, .offset = offset, .least = least, .most = INT_MAX, .served = served};
}
constexpr Key feature(std::string_view name, uint32_t bit) {
  return {.name = name, .set = set_feature, .feature = bit};
}

#define DAPPLE_AT(member) #member, offsetof(DeviceAttributes, member)
#define DAPPLE_LIMIT(member, least) limit(#member, offsetof(DeviceAttributes, member), least, kServed.member)
constexpr Key kKeys[] = {
    {.name = "name", .set = set_name},
    {.name = "devices", .set = set_devices, .least = 1, .most = soft::kMaxRails, .served = soft::kMaxRails},
    {.name = "netdev", .set = set_netdev},
    text(DAPPLE_AT(fw_ver)),
    text(DAPPLE_AT(hca_type)),
    text(DAPPLE_AT(board_id)),
    text(DAPPLE_AT(node_desc)),
    number(DAPPLE_AT(vendor_id), 0xFFFFFF),
    number(DAPPLE_AT(vendor_part_id), UINT32_MAX),
    number(DAPPLE_AT(hw_ver), UINT32_MAX),
    {.name = "rate", .set = set_rate},
    {.name = "gid_twins", .set = set_gid_twins},
    {.name = "pci", .set = set_pci},
    {.name = "driver", .set = set_driver, .offset = offsetof(DeviceAttributes, driver)},
    number(DAPPLE_AT(pci_class), 0xFFFFFF),
    number(DAPPLE_AT(pci_vendor), 0xFFFF),
    number(DAPPLE_AT(pci_device), 0xFFFF),
    number(DAPPLE_AT(pci_subsystem_vendor), 0xFFFF),
    number(DAPPLE_AT(pci_subsystem_device), 0xFFFF),
    number(DAPPLE_AT(pci_revision), 0xFF),
    {.name = "pci_link_speed", .set = set_link_speed},
    number(DAPPLE_AT(pci_link_width), 32),
    {.name = "numa", .set = set_numa},
    {.name = "cpus", .set = set_cpus},
    {.name = "max_mr_size",
     .set = set_number<uint64_t>,
     .offset = offsetof(DeviceAttributes, max_mr_size),
     .least = 4096,
     .most = UINT64_MAX},
    {.name = "page_size_cap",
     .set = set_number<uint64_t>,
     .offset = offsetof(DeviceAttributes, page_size_cap),
     .least = 4096,
     .most = UINT64_MAX},
    {.name = "device_cap_flags",
     .set = set_number<uint64_t>,
     .offset = offsetof(DeviceAttributes, device_cap_flags),
     .most = UINT64_MAX},
    DAPPLE_LIMIT(max_qp, 1),
    DAPPLE_LIMIT(max_qp_wr, 1),
    {.name = "max_sge", .set = set_max_sge, .least = 1, .most = INT_MAX, .served = kServed.max_send_sge},
    DAPPLE_LIMIT(max_send_sge, 1),
    DAPPLE_LIMIT(max_recv_sge, 1),
    DAPPLE_LIMIT(max_sge_rd, 1),
    DAPPLE_LIMIT(max_inline, 0),
    {.name = "max_msg_sz",
     .set = set_number<uint32_t>,
     .offset = offsetof(DeviceAttributes, max_msg_sz),
     .least = 4096,
     .most = UINT32_MAX,
     .served = kServed.max_msg_sz},
    {.name = "too_long", .set = set_too_long},
    DAPPLE_LIMIT(max_cq, 1),
    DAPPLE_LIMIT(max_cqe, 1),
    {.name = "num_comp_vectors",
     .set = set_number<uint32_t>,
     .offset = offsetof(DeviceAttributes, num_comp_vectors),
     .least = 1,
     .most = 4096,
     .served = 4096},
    feature("resize_cq", soft::kFeatureResizeCq),
    DAPPLE_LIMIT(max_mr, 1),
    DAPPLE_LIMIT(max_pd, 1),
    DAPPLE_LIMIT(max_mw, 0),
    feature("memory_windows", soft::kFeatureMemoryWindows),
    DAPPLE_LIMIT(max_ah, 1),
    DAPPLE_LIMIT(max_srq, 0),
    DAPPLE_LIMIT(max_srq_wr, 0),
    DAPPLE_LIMIT(max_srq_sge, 0),
    feature("srq", soft::kFeatureSrq),
    {.name = "atomics", .set = set_atomics},
    feature("flush", soft::kFeatureFlush),
    feature("time_stamps", soft::kFeatureTimeStamps),
    feature("on_demand_paging", soft::kFeatureOnDemand),
    feature("device_memory", soft::kFeatureDeviceMemory),
    feature("dma_handles", soft::kFeatureDmaHandles),
    feature("completion_counters", soft::kFeatureCompletionCounters),
    feature("tag_matching", soft::kFeatureTagMatching),
    DAPPLE_LIMIT(max_qp_rd_atom, 0),
    DAPPLE_LIMIT(max_qp_init_rd_atom, 0),
    DAPPLE_LIMIT(max_res_rd_atom, 0),
    DAPPLE_LIMIT(max_mcast_grp, 0),
    DAPPLE_LIMIT(max_mcast_qp_attach, 0),
    DAPPLE_LIMIT(max_total_mcast_qp_attach, 0),
    feature("multicast", soft::kFeatureMulticast),
    number(DAPPLE_AT(local_ca_ack_delay), 31),
};
#undef DAPPLE_LIMIT
#undef DAPPLE_AT

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool set_key(std::string_view key, std::string_view value, Identity& identity, soft::Problem& problem) {
  Nearest nearest(key);
  for (const Key& known : kKeys) {
    if (known.name == key) return known.set(known, value, identity, problem);
    nearest.offer(known.name);
  }
  const std::string_view best = nearest.best();
  problem.set(EINVAL, "unknown key %.*s%s%.*s", std::min(shown(key), 40), key.data(),
              best.empty() ? "" : "; the nearest is ", shown(best), best.data());
  return false;
}

bool complete(const Identity& identity, std::string_view name, soft::Problem& problem) {
  const DeviceAttributes& attributes = identity.attributes;
  if (attributes.has_pci != 0 && attributes.driver[0] == '\0') {
    problem.set(EINVAL, "%.*s: a device with a PCI function (pci) needs its driver (driver)", shown(name), name.data());
    return false;
  }
  return true;
}

void for_each_key(void (*each)(std::string_view key, void* argument), void* argument) {
  for (const Key& key : kKeys) each(key.name, argument);
}

}  // namespace dapple::face

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/devices.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tools/report/table.hpp"

namespace dapple::info {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;
using Context = std::unique_ptr<ibv_context, decltype(&ibv_close_device)>;

const char* answer(uint8_t value) {
  return dappledv_answer_str(static_cast<dappledv_answer>(value));
}

const char* yes_no(bool value) {
  return value ? "yes" : "no";
}

std::string text_of_odp(const dappledv_device_attr& attr) {
  if (attr.on_demand_paging != DAPPLEDV_ANSWER_YES) return answer(attr.on_demand_paging);
  return attr.odp_general_caps & IBV_ODP_SUPPORT_IMPLICIT ? "yes, implicit too" : "yes";
}

std::string text_of_windows(const dappledv_device_attr& attr) {
  if (attr.window_type_1 == DAPPLEDV_ANSWER_UNKNOWN) return "unknown";
  std::string types;
  const auto add = [&types](uint8_t has, const char* name) {
    if (has == DAPPLEDV_ANSWER_YES) types += (types.empty() ? "type " : ", ") + std::string(name);
  };
  add(attr.window_type_1, "1");
  add(attr.window_type_2a, "2A");
  add(attr.window_type_2b, "2B");
  return types.empty() ? "no" : types;
}

std::string text_of_persistence(const dappledv_device_attr& attr) {
  if (!attr.persist_supported) return "not possible";
  return attr.caches_persistent == DAPPLEDV_ANSWER_YES ? "none needed (eADR)" : attr.persist_instruction;
}

// A line of the second table: what it is called there and in JSON, and how it is read off.
struct Attribute {
  const char* title;
  const char* key;
  std::string (*text)(const dappledv_device_attr&);
};

constexpr Attribute kAttributes[] = {
    {"sync needed for reads", "sync_for_device_required",
     [](const dappledv_device_attr& a) -> std::string { return yes_no(a.sync_for_device_required); }},
    {"sync needed for writes", "sync_for_cpu_required",
     [](const dappledv_device_attr& a) -> std::string { return yes_no(a.sync_for_cpu_required); }},
    {"sync possible here", "sync_supported",
     [](const dappledv_device_attr& a) -> std::string { return yes_no(a.sync_supported); }},
    {"sync complete", "sync_complete",
     [](const dappledv_device_attr& a) -> std::string { return yes_no(a.sync_complete); }},
    {"cache line, bytes", "line_size", [](const dappledv_device_attr& a) { return std::to_string(a.line_size); }},
    {"writeback granule, bytes", "writeback_granule",
     [](const dappledv_device_attr& a) { return std::to_string(a.writeback_granule); }},
    {"clean", "clean_instruction", [](const dappledv_device_attr& a) -> std::string { return a.clean_instruction; }},
    {"clean + invalidate", "clean_invalidate_instruction",
     [](const dappledv_device_attr& a) -> std::string { return a.clean_invalidate_instruction; }},
    {"CPU caches persistent", "caches_persistent",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.caches_persistent); }},
    {"persist", "persist_instruction", text_of_persistence},
    {"maintenance refused, because", "refusal",
     [](const dappledv_device_attr& a) -> std::string { return a.refusal ? a.refusal : ""; }},
    {"PCIe relaxed ordering", "pci_relaxed_ordering",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.pci_relaxed_ordering); }},
    {"PCIe no-snoop", "pci_no_snoop",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.pci_no_snoop); }},
    {"atomic write", "atomic_write",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.atomic_write); }},
    {"flush to visibility", "flush_visibility",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.flush_visibility); }},
    {"flush to persistence", "flush_persistence",
     [](const dappledv_device_attr& a) -> std::string { return answer(a.flush_persistence); }},
    {"on-demand paging", "on_demand_paging", text_of_odp},
    {"memory windows", "memory_windows", text_of_windows},
};

void open_and_ask(ibv_device* device, Device& out) {
  const Context context(ibv_open_device(device), &ibv_close_device);
  if (!context) {
    // libibverbs tries other ways after a refusal, and the last one's errno says nothing of it.
    const int error = errno;
    const std::string file = fmt::format("/dev/infiniband/{}", device->dev_name);
    const bool refused = access(file.c_str(), R_OK | W_OK) != 0 && errno == EACCES;
    out.problem = fmt::format("cannot be opened: {}", std::strerror(refused ? EACCES : error));
    if (refused) out.problem += fmt::format("; read and write access to {} is needed", file);
    return;
  }
  dappledv_device_attr attr{};
  attr.comp_mask = DAPPLEDV_DEVICE_ATTR_PERSISTENCE;
  if (const int error = dappledv_query_device(context.get(), &attr)) {
    out.problem = fmt::format("cannot be queried: {}; is DAPPLE_COHERENCE right?", std::strerror(error));
    return;
  }
  out.attr = attr;
  const char* obstacle = dappledv_attach_obstacle(context.get());
  out.overlay = obstacle ? fmt::format("no: {}", obstacle) : "yes";
}

std::string attributes_table(const std::vector<Device>& devices) {
  std::vector<std::vector<std::string>> rows{{"ATTRIBUTE"}};
  for (const Device& device : devices) {
    if (device.attr) rows[0].push_back(device.kernel.name);
  }
  if (rows[0].size() == 1) return {};
  for (const Attribute& attribute : kAttributes) {
    rows.push_back({attribute.title});
    for (const Device& device : devices) {
      if (device.attr) rows.back().push_back(attribute.text(*device.attr));
    }
  }
  rows.push_back({"overlay possible"});
  for (const Device& device : devices) {
    if (device.attr) rows.back().push_back(device.overlay);
  }
  return "\n" + format_table(rows);
}

}  // namespace

std::vector<Device> read_devices() {
  std::vector<Device> devices;
  for (verbs::RdmaDevice& device : verbs::rdma_devices()) {
    devices.push_back({std::move(device), {}, "libibverbs has no driver library for it", {}});
  }
  const DeviceList list(ibv_get_device_list(nullptr), &ibv_free_device_list);
  for (ibv_device** at = list.get(); at && *at; ++at) {
    const char* name = ibv_get_device_name(*at);
    auto found =
        std::find_if(devices.begin(), devices.end(), [name](const Device& d) { return d.kernel.name == name; });
    if (found == devices.end()) {
      devices.emplace_back();
      found = devices.end() - 1;
      found->kernel.name = name;
    }
    found->problem.clear();
    open_and_ask(*at, *found);
  }
  return devices;
}

std::string devices_for_people(const std::vector<Device>& devices) {
  std::vector<std::vector<std::string>> rows{
      {"DEVICE", "DRIVER", "PROTOCOL", "PORT", "STATE", "NETDEV", "COHERENCE", "BY", "REASON"}};
  for (const Device& device : devices) {
    std::vector<verbs::RdmaPort> ports = device.kernel.ports;
    if (ports.empty()) ports.emplace_back();
    for (size_t i = 0; i < ports.size(); ++i) {
      const bool first = i == 0;
      rows.push_back({device.kernel.name, device.kernel.driver, device.kernel.protocol,
                      ports[i].number ? std::to_string(ports[i].number) : "", ports[i].state, ports[i].netdev,
                      device.attr ? dappledv_coherence_str(device.attr->coherence) : "unknown",
                      device.attr ? dappledv_certainty_str(device.attr->certainty) : "",
                      !first        ? "as above"
                      : device.attr ? device.attr->explanation
                                    : device.problem});
    }
  }
  return format_table(rows) + attributes_table(devices);
}

void devices_as_json(const std::vector<Device>& devices, Json& json) {
  json.begin_array("devices");
  for (const Device& device : devices) {
    json.begin_object().text("name", device.kernel.name).text("driver", device.kernel.driver);
    json.text("protocol", device.kernel.protocol).text("firmware", device.kernel.firmware);
    json.text("node_guid", device.kernel.node_guid).text("source", device.kernel.by_netlink ? "netlink" : "sysfs");
    json.begin_array("ports");
    for (const verbs::RdmaPort& port : device.kernel.ports) {
      json.begin_object().number("number", port.number).text("state", port.state);
      json.text("physical_state", port.physical_state).text("netdev", port.netdev).end_object();
    }
    json.end_array();
    if (!device.attr) {
      json.null("attributes").text("problem", device.problem).end_object();
      continue;
    }
    const dappledv_device_attr& attr = *device.attr;
    json.begin_object("attributes").text("coherence", dappledv_coherence_str(attr.coherence));
    json.text("decided_by", dappledv_reason_str(attr.reason)).text("certainty", dappledv_certainty_str(attr.certainty));
    json.text("reason", attr.explanation);
    for (const Attribute& attribute : kAttributes) json.text(attribute.key, attribute.text(attr));
    json.text("overlay", device.overlay);
    json.number("max_windows", attr.max_windows).number("odp_general_caps", attr.odp_general_caps);
    json.number("odp_rc_caps", attr.odp_rc_caps).number("odp_uc_caps", attr.odp_uc_caps);
    json.number("odp_ud_caps", attr.odp_ud_caps).number("odp_xrc_caps", attr.odp_xrc_caps);
    json.end_object().null("problem").end_object();
  }
  json.end_array();
}

std::string how_to_get_a_device(const std::string& netdev) {
  return fmt::format(
      "There is no RDMA device here. To get one:\n"
      "  a card: load its driver; 'rdma link' then lists it\n"
      "  rdma link add rxe0 type rxe netdev {0}   as root, RoCE in software over a network device (module rdma_rxe)\n"
      "  rdma link add siw0 type siw netdev {0}   likewise, iWARP (module siw)\n"
      "  scripts/softroce COMMAND                   of dapple's source: runs COMMAND beside a software device in a\n"
      "                                             virtual machine, without root and whatever kernel is here\n"
      "On rxe, dapple-run --emulate PROGRAM then shows whether a program's sync calls are right.\n",
      netdev);
}

std::string what_to_run(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    if (device.kernel.driver != "rxe") continue;
    text =
        "dapple-run --emulate PROGRAM shows whether a program's sync calls are right: it makes rxe devices behave as "
        "ones\nthat are not coherent, and reports what was not synced.\n";
  }
  return text;
}

std::string some_netdev() {
  ifaddrs* list = nullptr;
  std::string name = "eth0";
  if (getifaddrs(&list)) return name;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) && !(entry->ifa_flags & IFF_LOOPBACK)) return entry->ifa_name;
  }
  return name;
}

}  // namespace dapple::info

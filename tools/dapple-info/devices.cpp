// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/devices.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "ibverbs-glue/capabilities.hpp"
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

std::string flag(const Attributes& attr, uint64_t bit) {
  return attr.capabilities ? yes_no((attr.capabilities->device_cap_flags_ex & bit) != 0) : "unknown";
}

std::string text_of_odp(const Attributes& attr) {
  if (!attr.capabilities) return "unknown";
  const uint64_t caps = attr.capabilities->odp_caps.general_caps;
  if (!(caps & IBV_ODP_SUPPORT)) return "no";
  return caps & IBV_ODP_SUPPORT_IMPLICIT ? "yes, implicit too" : "yes";
}

std::string text_of_windows(const Attributes& attr) {
  if (!attr.capabilities) return "unknown";
  std::string types;
  const auto add = [&](unsigned int type, const char* name) {
    if (!verbs::has_windows(attr.capabilities->orig_attr, type)) return;
    types += (types.empty() ? "type " : ", ") + std::string(name);
  };
  add(IBV_DEVICE_MEM_WINDOW, "1");
  add(IBV_DEVICE_MEM_WINDOW_TYPE_2A, "2A");
  add(IBV_DEVICE_MEM_WINDOW_TYPE_2B, "2B");
  return types.empty() ? "no" : types;
}

std::string text_of_persistence(const Attributes& attr) {
  if (!attr.persist_supported) return "not possible";
  return attr.caches_persistent == DAPPLEDV_ANSWER_YES ? "none needed (eADR)" : attr.persist_instruction;
}

// A line of the second table: its name there and in JSON, and its value.
struct Attribute {
  const char* title;
  const char* key;
  std::string (*text)(const Attributes&);
};

constexpr Attribute kAttributes[] = {
    {"sync needed for reads", "sync_for_device_required",
     [](const Attributes& a) -> std::string { return yes_no(a.sync_for_device_required); }},
    {"sync needed for writes", "sync_for_cpu_required",
     [](const Attributes& a) -> std::string { return yes_no(a.sync_for_cpu_required); }},
    {"sync possible here", "sync_supported",
     [](const Attributes& a) -> std::string { return yes_no(a.sync_supported); }},
    {"sync complete", "sync_complete", [](const Attributes& a) -> std::string { return yes_no(a.sync_complete); }},
    {"cache line, bytes", "line_size", [](const Attributes& a) { return std::to_string(a.line_size); }},
    {"writeback granule, bytes", "writeback_granule",
     [](const Attributes& a) { return std::to_string(a.writeback_granule); }},
    {"clean", "clean_instruction", [](const Attributes& a) -> std::string { return a.clean_instruction; }},
    {"clean + invalidate", "clean_invalidate_instruction",
     [](const Attributes& a) -> std::string { return a.clean_invalidate_instruction; }},
    {"CPU caches persistent", "caches_persistent",
     [](const Attributes& a) -> std::string { return answer(a.caches_persistent); }},
    {"persist", "persist_instruction", text_of_persistence},
    {"maintenance refused, because", "refusal",
     [](const Attributes& a) -> std::string { return a.refusal ? a.refusal : ""; }},
    {"PCIe relaxed ordering", "pci_relaxed_ordering",
     [](const Attributes& a) -> std::string { return answer(a.pci_relaxed_ordering); }},
    {"PCIe no-snoop", "pci_no_snoop", [](const Attributes& a) -> std::string { return answer(a.pci_no_snoop); }},
    {"atomic write", "atomic_write", [](const Attributes& a) { return flag(a, verbs::kDeviceAtomicWrite); }},
    {"flush to visibility", "flush_visibility", [](const Attributes& a) { return flag(a, verbs::kDeviceFlushGlobal); }},
    {"flush to persistence", "flush_persistence",
     [](const Attributes& a) { return flag(a, verbs::kDeviceFlushPersistent); }},
    {"on-demand paging", "on_demand_paging", text_of_odp},
    {"memory windows", "memory_windows", text_of_windows},
};

void open_and_ask(ibv_device* device, Device& out) {
  for (const verbs::RdmaPort& port : out.kernel.ports) out.ports.emplace_back().number = port.number;
  const Context context(ibv_open_device(device), &ibv_close_device);
  if (!context) {
    // libibverbs tries other means after a refusal, so the last errno does not show the refusal.
    const int error = errno;
    const std::string file = fmt::format("/dev/infiniband/{}", device->dev_name);
    const bool refused = access(file.c_str(), R_OK | W_OK) != 0 && errno == EACCES;
    out.problem = fmt::format("cannot be opened: {}", std::strerror(refused ? EACCES : error));
    if (refused) out.problem += fmt::format("; read and write access to {} is needed", file);
    return;
  }
  for (Port& port : out.ports) port = read_port(context.get(), port.number, out.kernel.protocol);
  Attributes attr{};
  if (const int error = dappledv_query_device(context.get(), &attr)) {
    out.problem =
        fmt::format("cannot be queried: {}; are DAPPLE_COHERENCE and DAPPLE_PERSISTENCE right?", std::strerror(error));
    return;
  }
  attr.capabilities = verbs::query_capabilities(context.get());
  out.attr = attr;
  const char* obstacle = dappledv_attach_obstacle(context.get());
  out.overlay = obstacle ? fmt::format("no: {}", obstacle) : "yes";
}

std::string ports_tables(const std::vector<Device>& devices) {
  Rows ports{{"DEVICE", "PORT", "NETDEV", "MTU", "SPEED", "OPEN AS", "ADDRESSES"}};
  Rows gids{{"DEVICE", "PORT", "INDEX", "TYPE", "GID"}};
  for (const Device& device : devices) add_port_rows(device.kernel.name, device.ports, ports, gids);
  const auto table = [](const Rows& rows) { return rows.size() == 1 ? "" : "\n" + format_table(rows); };
  return table(ports) + table(gids);
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
    devices.push_back({std::move(device), {}, "libibverbs has no driver library for it", {}, {}});
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
  const std::vector<tools::NamedPort> named = tools::named_ports();
  for (Device& device : devices) {
    for (Port& port : device.ports) add_names(port, device.kernel.name, named);
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
  return format_table(rows) + ports_tables(devices) + attributes_table(devices);
}

Json attributes_as_json(const Device& device) {
  const Attributes& attr = *device.attr;
  Json json = {{"coherence", dappledv_coherence_str(attr.coherence)},
               {"decided_by", dappledv_reason_str(attr.reason)},
               {"certainty", dappledv_certainty_str(attr.certainty)},
               {"reason", attr.explanation}};
  for (const Attribute& attribute : kAttributes) json[attribute.key] = attribute.text(attr);
  json["overlay"] = device.overlay;
  const ibv_device_attr_ex capabilities = attr.capabilities.value_or(ibv_device_attr_ex{});
  const auto& odp = capabilities.odp_caps.per_transport_caps;
  json["max_windows"] = std::max(capabilities.orig_attr.max_mw, 0);
  json["odp_general_caps"] = capabilities.odp_caps.general_caps;
  json["odp_rc_caps"] = odp.rc_odp_caps;
  json["odp_uc_caps"] = odp.uc_odp_caps;
  json["odp_ud_caps"] = odp.ud_odp_caps;
  json["odp_xrc_caps"] = capabilities.xrc_odp_caps;
  return json;
}

Json devices_as_json(const std::vector<Device>& devices) {
  Json list = Json::array();
  for (const Device& device : devices) {
    Json ports = Json::array();
    for (const verbs::RdmaPort& port : device.kernel.ports) {
      Json json = {{"number", port.number},
                   {"state", port.state},
                   {"physical_state", port.physical_state},
                   {"netdev", port.netdev}};
      for (const Port& more : device.ports) {
        if (more.number == port.number) json.update(port_as_json(more));
      }
      ports.push_back(json);
    }
    list.push_back({{"name", device.kernel.name},
                    {"driver", device.kernel.driver},
                    {"protocol", device.kernel.protocol},
                    {"firmware", device.kernel.firmware},
                    {"node_guid", device.kernel.node_guid},
                    {"source", device.kernel.by_netlink ? "netlink" : "sysfs"},
                    {"ports", ports},
                    {"attributes", device.attr ? attributes_as_json(device) : Json()},
                    {"problem", device.attr ? Json() : Json(device.problem)}});
  }
  return list;
}

std::string how_to_get_a_device(const std::string& netdev, bool with_softroce) {
  return fmt::format(
      "There is no RDMA device here. To get one:\n"
      "  dapple-run PROGRAM   runs PROGRAM with a software device, without root and without a kernel module\n"
      "  a card: load its driver; 'rdma link' then lists it\n"
      "  rdma link add rxe0 type rxe netdev {0}   as root, RoCE in software over a network device (module rdma_rxe)\n"
      "  rdma link add siw0 type siw netdev {0}   the same for iWARP (module siw)\n"
      "{1}"
      "On rxe and on dapple-run's devices, dapple-run --emulate PROGRAM checks a program's sync calls.\n",
      netdev,
      with_softroce
          ? "  dapple-softroce -- COMMAND                 runs COMMAND beside a software device in a virtual machine,\n"
            "                                             without root and with any kernel\n"
          : "");
}

std::string program_folders() {
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  const char* path = getenv("PATH");
  return own + ':' + (path != nullptr ? path : "");
}

bool has_softroce(const std::string& folders) {
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty() && access((folder + "/dapple-softroce").c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string what_to_run(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    if (device.kernel.driver != "rxe") continue;
    text =
        "dapple-run --emulate PROGRAM checks a program's sync calls: it makes rxe devices behave like devices\nthat "
        "are not coherent, and reports missing syncs.\n";
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/rdma_devices.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dapple::verbs {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  return line;
}

// sysfs writes "4: ACTIVE".
std::string after_number(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

// The names of the entries of a folder; none if it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

RdmaDevice device_in(const fs::path& folder) {
  RdmaDevice device;
  device.name = folder.filename();
  device.node_guid = first_line(folder / "node_guid");
  device.firmware = first_line(folder / "fw_ver");
  std::error_code failure;
  const fs::path driver = fs::read_symlink(folder / "device/driver", failure);
  if (!failure) device.driver = driver.filename();
  const bool iwarp = after_number(first_line(folder / "node_type")) == "RNIC";
  for (const std::string& name : names_in(folder / "ports")) {
    RdmaPort port;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), port.number);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    const fs::path at = folder / "ports" / name;
    port.state = after_number(first_line(at / "state"));
    port.physical_state = after_number(first_line(at / "phys_state"));
    port.netdev = first_line(at / "gid_attrs/ndevs/0");
    const std::string layer = first_line(at / "link_layer");
    if (device.protocol.empty())
      device.protocol = iwarp ? "iw" : layer == "Ethernet" ? "roce" : layer.empty() ? "" : "ib";
    device.ports.push_back(port);
  }
  std::sort(device.ports.begin(), device.ports.end(),
            [](const RdmaPort& a, const RdmaPort& b) { return a.number < b.number; });
  return device;
}

}  // namespace

std::vector<RdmaDevice> rdma_devices_by_sysfs(const std::string& sysfs) {
  std::vector<RdmaDevice> devices;
  const fs::path folder = fs::path(sysfs) / "class/infiniband";
  for (const std::string& name : names_in(folder)) devices.push_back(device_in(folder / name));
  return devices;
}

std::vector<RdmaDevice> rdma_devices() {
  // As libibverbs does it: a tree of another place is for programs that are not privileged.
  const char* sysfs = secure_getenv("SYSFS_PATH");
  std::vector<RdmaDevice> shown = rdma_devices_by_sysfs(sysfs && *sysfs ? sysfs : "/sys");
  auto told = rdma_devices_by_netlink();
  if (!told) return shown;
  for (RdmaDevice& device : shown) {
    const bool known =
        std::any_of(told->begin(), told->end(), [&](const RdmaDevice& other) { return other.name == device.name; });
    if (!known) told->push_back(std::move(device));
  }
  return *std::move(told);
}

std::string netdev_of_port(const std::string& device, uint32_t port) {
  for (const RdmaDevice& candidate : rdma_devices()) {
    if (candidate.name != device) continue;
    for (const RdmaPort& at : candidate.ports) {
      if (at.number == port) return at.netdev;
    }
  }
  return {};
}

}  // namespace dapple::verbs

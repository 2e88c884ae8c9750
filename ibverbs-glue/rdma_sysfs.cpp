// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <arpa/inet.h>
#include <limits.h>
#include <net/if_arp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "ibverbs-glue/files.hpp"
#include "ibverbs-glue/rdma_devices.hpp"

namespace dapple::verbs {
namespace {

using Gid = std::array<uint8_t, 16>;

std::string folder_of_devices(const std::string& sysfs) {
  return sysfs + "/class/infiniband";
}

// sysfs writes "4: ACTIVE".
std::string after_number(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

std::optional<Gid> gid_of(const std::string& port) {
  Gid gid;
  if (::inet_pton(AF_INET6, first_line(port + "/gids/0").c_str(), gid.data()) != 1) return std::nullopt;
  return gid;
}

// "02:11:..." as bytes.
std::vector<uint8_t> hardware_address(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at + 2 <= text.size(); at += 3) {
    uint8_t byte = 0;
    if (std::from_chars(&text[at], &text[at] + 2, byte, 16).ptr != &text[at] + 2) return {};
    bytes.push_back(byte);
  }
  return bytes;
}

// For a GID without a network device from the kernel: an IPoIB device's address ends in the port's GID, and the GID of
// an iWARP port begins with the Ethernet address.
std::string netdev_by_hardware_address(const std::string& sysfs, const std::string& port) {
  const auto gid = gid_of(port);
  if (!gid) return {};
  const std::string netdevs = sysfs + "/class/net/";
  for (const std::string& netdev : names_in(netdevs)) {
    const std::string folder = netdevs + netdev;
    const std::vector<uint8_t> address = hardware_address(first_line(folder + "/address"));
    const int type = std::atoi(first_line(folder + "/type").c_str());
    if (type == ARPHRD_INFINIBAND && address.size() == 20 && std::equal(gid->begin(), gid->end(), address.begin() + 4))
      return netdev;
    constexpr Gid kAfterMac{};
    if (type == ARPHRD_ETHER && address.size() == 6 && std::equal(address.begin(), address.end(), gid->begin()) &&
        std::equal(gid->begin() + 6, gid->end(), kAfterMac.begin()))
      return netdev;
  }
  return {};
}

// The last part of a symbolic link's target; empty if there is none.
std::string name_behind(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  if (size < 0) return {};
  const std::string path(target, static_cast<size_t>(size));
  return path.substr(path.rfind('/') + 1);
}

RdmaDevice device_in(const std::string& sysfs, const std::string& device_name) {
  const std::string folder = folder_of_devices(sysfs) + "/" + device_name;
  RdmaDevice device;
  device.name = device_name;
  device.node_guid = first_line(folder + "/node_guid");
  device.firmware = first_line(folder + "/fw_ver");
  device.driver = name_behind(folder + "/device/driver");
  const bool iwarp = after_number(first_line(folder + "/node_type")) == "RNIC";
  const std::string ports = folder + "/ports/";
  for (const std::string& name : names_in(ports)) {
    RdmaPort port;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), port.number);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    const std::string at = ports + name;
    port.state = after_number(first_line(at + "/state"));
    port.physical_state = after_number(first_line(at + "/phys_state"));
    port.netdev = first_line(at + "/gid_attrs/ndevs/0");
    if (port.netdev.empty()) port.netdev = netdev_by_hardware_address(sysfs, at);
    const std::string layer = first_line(at + "/link_layer");
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
  for (const std::string& name : names_in(folder_of_devices(sysfs))) devices.push_back(device_in(sysfs, name));
  return devices;
}

}  // namespace dapple::verbs

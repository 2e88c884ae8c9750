// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/rdma_ports.hpp"

#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "ibverbs-glue/rdma_devices.hpp"

namespace dapple::registry {
namespace {

// The addresses of the network devices in this network namespace.
struct NetdevAddress {
  std::string netdev, address;
};

std::vector<NetdevAddress> netdev_addresses() {
  std::vector<NetdevAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list)) {
    verbs::throw_at_shortage(errno);
    return found;
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST)) continue;
    found.push_back({entry->ifa_name, text});
  }
  return found;
}

std::vector<RdmaPort> ports_of(const std::vector<verbs::RdmaDevice>& devices) {
  std::vector<RdmaPort> ports;
  for (const verbs::RdmaDevice& device : devices)
    for (const verbs::RdmaPort& port : device.ports)
      ports.push_back({device.name, port.number, port.netdev, port.state == "ACTIVE", {}});
  if (ports.empty()) return ports;
  for (const NetdevAddress& known : netdev_addresses())
    for (RdmaPort& port : ports)
      if (port.netdev == known.netdev) port.addresses.push_back(known.address);
  return ports;
}

}  // namespace

std::vector<RdmaPort> rdma_ports(const std::string& sysfs) {
  return ports_of(verbs::rdma_devices_by_sysfs(sysfs));
}

std::vector<RdmaPort> rdma_ports() {
  std::vector<verbs::RdmaDevice> devices = verbs::rdma_devices_by_sysfs(verbs::sysfs_root());
  // Netlink lists this machine's devices; a tree other than /sys describes another machine.
  auto told = verbs::sysfs_root() == "/sys" ? verbs::rdma_devices_by_netlink() : std::nullopt;
  if (told) {
    for (verbs::RdmaDevice& device : *told) {
      const bool is_known = std::any_of(devices.begin(), devices.end(),
                                        [&](const verbs::RdmaDevice& known) { return known.name == device.name; });
      if (!is_known) devices.push_back(std::move(device));
    }
  }
  return ports_of(devices);
}

}  // namespace dapple::registry

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/ports/rdma_ports.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "udapl/ports/read_file.hpp"

namespace dapple::dat {
namespace {

using Gid = std::array<uint8_t, 16>;

// A port must not seem to be missing for want of a descriptor or of memory.
void throw_at_shortage(int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) throw std::bad_alloc();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) throw_at_shortage(errno);
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

// The first line; empty if there is none or the kernel refuses to say.
std::string line_of(const std::string& path) {
  std::string text;
  if (const int error = read_file(path.c_str(), text)) {
    throw_at_shortage(error);
    return {};
  }
  return text.substr(0, text.find('\n'));
}

std::optional<Gid> gid_of(const std::string& port) {
  Gid gid;
  if (::inet_pton(AF_INET6, line_of(port + "/gids/0").c_str(), gid.data()) != 1) return std::nullopt;
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

// Where the kernel names no network device for the GID: an IPoIB device ends in the port's GID, and the GID of an iWARP
// port begins with the Ethernet address.
std::string netdev_by_hardware_address(const std::string& sysfs, const std::string& port) {
  const auto gid = gid_of(port);
  if (!gid) return {};
  for (const std::string& netdev : names_in(sysfs + "/class/net")) {
    const std::string folder = sysfs + "/class/net/" + netdev;
    const std::vector<uint8_t> address = hardware_address(line_of(folder + "/address"));
    const int type = std::atoi(line_of(folder + "/type").c_str());
    if (type == ARPHRD_INFINIBAND && address.size() == 20 && std::equal(gid->begin(), gid->end(), address.begin() + 4))
      return netdev;
    constexpr Gid kAfterMac{};
    if (type == ARPHRD_ETHER && address.size() == 6 && std::equal(address.begin(), address.end(), gid->begin()) &&
        std::equal(gid->begin() + 6, gid->end(), kAfterMac.begin()))
      return netdev;
  }
  return {};
}

// The addresses of the network devices of this namespace.
struct NetdevAddress {
  std::string netdev, address;
};

std::vector<NetdevAddress> netdev_addresses() {
  std::vector<NetdevAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list)) {
    throw_at_shortage(errno);
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

}  // namespace

std::string sysfs_root() {
  const char* path = ::secure_getenv("SYSFS_PATH");
  return path && *path ? path : "/sys";
}

std::vector<RdmaPort> rdma_ports(const std::string& sysfs) {
  std::vector<RdmaPort> ports;
  const std::string devices = sysfs + "/class/infiniband";
  for (const std::string& device : names_in(devices)) {
    for (const std::string& number : names_in(devices + "/" + device + "/ports")) {
      const std::string folder = devices + "/" + device + "/ports/" + number;
      RdmaPort port;
      port.device = device;
      port.number = static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 10));
      port.netdev = line_of(folder + "/gid_attrs/ndevs/0");
      if (port.netdev.empty()) port.netdev = netdev_by_hardware_address(sysfs, folder);
      port.is_active = std::atoi(line_of(folder + "/state").c_str()) == 4;  // IBTA PortState Active
      ports.push_back(std::move(port));
    }
  }
  if (ports.empty()) return ports;
  for (const NetdevAddress& known : netdev_addresses())
    for (RdmaPort& port : ports)
      if (port.netdev == known.netdev) port.addresses.push_back(known.address);
  return ports;
}

}  // namespace dapple::dat

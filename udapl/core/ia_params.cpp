// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia_params.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <sstream>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/log.hpp"
#include "udapl/ports/rdma_ports.hpp"

namespace dapple::dat {
namespace {

sockaddr_storage copy(const sockaddr* address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address, verbs::address_size(address));
  return storage;
}

// The first usable address of a network device, IPv4 before IPv6.
bool address_of_netdev(const std::string& name, sockaddr_storage& out) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
      if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || name != entry->ifa_name) continue;
      out = copy(entry->ifa_addr);
      return true;
    }
  }
  return false;
}

bool address_of_host(const std::string& name, sockaddr_storage& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &list)) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(list, &freeaddrinfo);
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    if (!verbs::address_size(entry->ai_addr)) continue;
    out = copy(entry->ai_addr);
    return true;
  }
  return false;
}

// The network device behind a port of an RDMA device.
std::string netdev_of_port(const std::string& device, uint32_t number) {
  for (const RdmaPort& port : rdma_ports())
    if (port.device == device && port.number == number) return port.netdev;
  return {};
}

}  // namespace

Result<IaParams> IaParams::parse(const std::string& text) {
  IaParams params;
  std::istringstream words(text);
  std::string word;
  if (!(words >> params.where)) {
    log_error("the ia_params field is empty; it must name a network device, as in \"eth0 0\"");
    return fail(Type::kInvalidParameter);
  }
  bool port_seen = false;
  while (words >> word) {
    constexpr std::string_view kCoherence = "coherence=";
    if (word.starts_with(kCoherence) && word.size() > kCoherence.size()) {
      params.coherence = word.substr(kCoherence.size());
      continue;
    }
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, params.port);
    if (port_seen || parsed.ec != std::errc() || parsed.ptr != end || params.port > 255) {
      log_error("ia_params \"%s\": cannot make sense of '%s'", text.c_str(), word.c_str());
      return fail(Type::kInvalidParameter);
    }
    port_seen = true;
  }
  return params;
}

Result<sockaddr_storage> resolve(const IaParams& params) {
  sockaddr_storage address{};
  if (params.port) {
    const std::string netdev = netdev_of_port(params.where, params.port);
    if (netdev.empty()) {
      log_error(
          "there is no RDMA device '%s' with a port %u; 'rdma link' lists what is there, and scripts/softroce runs "
          "a program beside a software one",
          params.where.c_str(), params.port);
      return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
    }
    if (address_of_netdev(netdev, address)) return address;
    log_error("port %u of %s has no IP address: give its network device %s one", params.port, params.where.c_str(),
              netdev.c_str());
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  if (address_of_netdev(params.where, address)) return address;
  if (if_nametoindex(params.where.c_str()) != 0) {
    log_error("network device %s has no IP address: give it one", params.where.c_str());
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  if (address_of_host(params.where, address)) return address;
  log_error(
      "'%s' is neither a network device of this machine nor an address; where there is no RDMA device, "
      "scripts/softroce runs a program beside a software one",
      params.where.c_str());
  return fail(Type::kInvalidAddress, Subtype::kAddressMalformed);
}

}  // namespace dapple::dat

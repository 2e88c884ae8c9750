// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/ia_params.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "ibverbs-glue/rdma_devices.hpp"
#include "udapl/core/log.hpp"

namespace dapple::udapl {
namespace {

// Finds the first usable address of a network device, IPv4 before IPv6. False if it has none.
Result<bool> address_of_netdev(const std::string& name, verbs::SocketAddress& out) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) return fail_errno(errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
      if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || name != entry->ifa_name) continue;
      out = verbs::SocketAddress(entry->ifa_addr);
      return true;
    }
  }
  return false;
}

Result<bool> address_of_host(const std::string& name, verbs::SocketAddress& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (error == EAI_MEMORY || (error == EAI_SYSTEM && is_shortage(errno))) return fail_errno(ENOMEM);
  if (error) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(list, &freeaddrinfo);
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    if (!verbs::address_size(entry->ai_addr)) continue;
    out = verbs::SocketAddress(entry->ai_addr);
    return true;
  }
  return false;
}

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Takes the next word off the text; empty at the end of the text.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

Result<IaParams> IaParams::parse(const std::string& text) {
  IaParams params;
  std::string_view rest = text;
  params.where = next_word(rest);
  if (params.where.empty()) {
    log_error("the ia_params field is empty; it must name a network device, as in \"eth0 0\"");
    return fail(Type::kInvalidParameter);
  }
  bool port_seen = false;
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    constexpr std::string_view kCoherence = "coherence=";
    if (word.starts_with(kCoherence) && word.size() > kCoherence.size()) {
      params.coherence = word.substr(kCoherence.size());
      continue;
    }
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, params.port);
    if (port_seen || parsed.ec != std::errc() || parsed.ptr != end || params.port > 255) {
      log_error("ia_params \"%s\": '%.*s' is not understood", text.c_str(), static_cast<int>(word.size()), word.data());
      return fail(Type::kInvalidParameter);
    }
    port_seen = true;
  }
  return params;
}

Result<verbs::SocketAddress> resolve(const IaParams& params) {
  verbs::SocketAddress address;
  if (params.port) {
    const std::string netdev = verbs::netdev_of_port(params.where, params.port);
    if (netdev.empty()) {
      log_error(
          "no RDMA device '%s' has a port %u; 'rdma link' lists the devices, and dapple-run runs a program with a "
          "software device",
          params.where.c_str(), params.port);
      return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
    }
    const auto found = address_of_netdev(netdev, address);
    if (!found) return tl::unexpected(found.error());
    if (*found) return address;
    log_error("port %u of %s has no IP address: add one to its network device %s", params.port, params.where.c_str(),
              netdev.c_str());
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  const auto local = address_of_netdev(params.where, address);
  if (!local) return tl::unexpected(local.error());
  if (*local) return address;
  if (if_nametoindex(params.where.c_str()) != 0) {
    log_error("network device %s has no IP address: add one", params.where.c_str());
    return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  }
  const auto host = address_of_host(params.where, address);
  if (!host) return tl::unexpected(host.error());
  if (*host) return address;
  log_error(
      "'%s' is neither a network device of this machine nor an address; without an RDMA device, dapple-run runs a "
      "program with a software device",
      params.where.c_str());
  return fail(Type::kInvalidAddress, Subtype::kAddressMalformed);
}

}  // namespace dapple::udapl

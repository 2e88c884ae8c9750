// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/dead_lines.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "ibverbs-glue/rdma_devices.hpp"

namespace dapple::info {
namespace {

std::string numeric(const sockaddr* address) {
  char text[NI_MAXHOST];
  const socklen_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

void add_network(std::vector<std::string>& names) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    names.emplace_back(entry->ifa_name);
    if (entry->ifa_addr && (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6)) {
      names.push_back(numeric(entry->ifa_addr));
    }
  }
}

void add_hosts(std::vector<std::string>& names) {
  sethostent(1);
  while (const hostent* host = gethostent()) {
    names.emplace_back(host->h_name);
    for (char** alias = host->h_aliases; alias && *alias; ++alias) names.emplace_back(*alias);
  }
  endhostent();
}

bool is_address(const std::string& word) {
  unsigned char room[sizeof(in6_addr)];
  return inet_pton(AF_INET, word.c_str(), room) == 1 || inet_pton(AF_INET6, word.c_str(), room) == 1;
}

}  // namespace

std::vector<std::string> names_here() {
  std::vector<std::string> names;
  for (const verbs::RdmaDevice& device : verbs::rdma_devices()) names.push_back(device.name);
  add_network(names);
  add_hosts(names);
  return names;
}

bool is_dead(const registry::ConfEntry& line, const std::vector<std::string>& here) {
  // All of the original providers, and their replacements.
  if (!line.library.substr(line.library.rfind('/') + 1).starts_with("libdapl")) return false;
  std::string where;
  std::istringstream(line.ia_params) >> where;
  if (where.empty() || std::find(here.begin(), here.end(), where) != here.end()) return false;
  return is_address(where) || where.find('.') == std::string::npos;
}

}  // namespace dapple::info

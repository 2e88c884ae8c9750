// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/host.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <cstring>
#include <memory>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {

sockaddr_storage address_of_host(const std::string& host, int family) {
  constexpr const char* kAdvice = "give the address of the server's RDMA device";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found)) {
    throw Failure(fmt::format("{}: {}; {}", host, gai_strerror(error), kAdvice));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
  for (const addrinfo* next = found; next; next = next->ai_next) {
    if (family != AF_UNSPEC && next->ai_family != family) continue;
    sockaddr_storage address{};
    std::memcpy(&address, next->ai_addr, next->ai_addrlen);
    return address;
  }
  throw Failure(
      fmt::format("{} has no {} address, which our IA needs; {}", host, family == AF_INET6 ? "IPv6" : "IPv4", kAdvice));
}

}  // namespace dapple::perf

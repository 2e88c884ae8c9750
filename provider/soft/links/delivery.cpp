// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/delivery.hpp"

#include <errno.h>
#include <string.h>

#include "provider/network/gid.hpp"
#include "provider/network/rtnetlink.hpp"

namespace dapple::soft {
namespace {

Transport meaning_of(int error) {
  switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EACCES:  // a route of the type "prohibit"
      return Transport::kOtherHost;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return lack_of(error);
    default:  // some sandboxes have no such question
      return Transport::kRouteUnknown;
  }
}

}  // namespace

Transport delivery(const Path& path) {
  if (memcmp(path.source, path.destination, sizeof path.source) == 0) return Transport::kSharedMemory;
  const OwnedFd socket = route_socket();
  if (!socket) return meaning_of(errno);
  const bool ipv4 = is_ipv4(path.destination);
  const size_t begin = ipv4 ? sizeof kMappedPrefix : 0;
  const uint32_t scope = is_link_local(path.destination) ? path.netdev_index : 0;
  const RouteQuestion question =
      route_question(ipv4 ? AF_INET : AF_INET6, path.source + begin, path.destination + begin, scope);
  RouteAnswer answer;
  if (const int error = ask_kernel(socket.get(), question, RTM_NEWROUTE, answer); error != 0) return meaning_of(error);
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(answer.message));
  return route->rtm_type == RTN_LOCAL ? Transport::kSharedMemory : Transport::kOtherHost;
}

}  // namespace dapple::soft

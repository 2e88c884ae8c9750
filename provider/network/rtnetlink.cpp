// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/network/rtnetlink.hpp"

#include <errno.h>
#include <string.h>

#include <cassert>

namespace dapple::soft {

void RouteQuestion::add(uint16_t type, const void* value, size_t size) {
  auto* bytes = reinterpret_cast<uint8_t*>(this);
  assert(header.nlmsg_len + RTA_SPACE(size) <= sizeof *this);
  rtattr attribute = {};
  attribute.rta_len = static_cast<uint16_t>(RTA_LENGTH(size));
  attribute.rta_type = type;
  memcpy(bytes + header.nlmsg_len, &attribute, sizeof attribute);
  memcpy(bytes + header.nlmsg_len + RTA_LENGTH(0), value, size);
  header.nlmsg_len += static_cast<uint32_t>(RTA_SPACE(size));
}

RouteQuestion route_question(int family, const void* source, const void* destination, uint32_t netdev_index) {
  const size_t length = family == AF_INET ? 4 : 16;
  RouteQuestion question;
  question.route = {};
  question.begin(RTM_GETROUTE, question.route);
  question.route.rtm_family = static_cast<uint8_t>(family);
  question.route.rtm_dst_len = static_cast<uint8_t>(8 * length);
  question.add(RTA_DST, destination, length);
  if (source != nullptr) {
    question.route.rtm_src_len = static_cast<uint8_t>(8 * length);
    question.add(RTA_SRC, source, length);
  }
  if (netdev_index != 0) question.add(RTA_OIF, &netdev_index, sizeof netdev_index);
  return question;
}

int ask_kernel(int socket, const RouteQuestion& question, uint16_t type, RouteAnswer& answer) {
  if (send(socket, &question, question.header.nlmsg_len, 0) < 0) return errno;
  const ssize_t size = recv(socket, answer.room, sizeof answer.room, MSG_DONTWAIT);
  if (size < 0) return errno;
  answer.message = reinterpret_cast<nlmsghdr*>(answer.room);
  if (!NLMSG_OK(answer.message, static_cast<size_t>(size))) return EPROTO;
  if (answer.message->nlmsg_type == type) return 0;
  if (answer.message->nlmsg_type != NLMSG_ERROR) return EPROTO;
  const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(answer.message));
  return error->error != 0 ? -error->error : EPROTO;
}

}  // namespace dapple::soft

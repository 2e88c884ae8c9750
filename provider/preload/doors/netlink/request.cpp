// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink/request.hpp"

#include <rdma/rdma_netlink.h>
#include <string.h>

namespace dapple::doors {
namespace {

NldevCommand command_of(unsigned operation) {
  switch (operation) {
    case RDMA_NLDEV_CMD_SYS_GET:
    case RDMA_NLDEV_CMD_GET_CHARDEV:
    case RDMA_NLDEV_CMD_STAT_GET_STATUS:
      return {.known = true};
    case RDMA_NLDEV_CMD_GET:
    case RDMA_NLDEV_CMD_PORT_GET:
    case RDMA_NLDEV_CMD_RES_GET:
    case RDMA_NLDEV_CMD_RES_QP_GET:
    case RDMA_NLDEV_CMD_RES_CM_ID_GET:
    case RDMA_NLDEV_CMD_RES_CQ_GET:
    case RDMA_NLDEV_CMD_RES_MR_GET:
    case RDMA_NLDEV_CMD_RES_PD_GET:
    case RDMA_NLDEV_CMD_RES_CTX_GET:
    case RDMA_NLDEV_CMD_RES_SRQ_GET:
    case RDMA_NLDEV_CMD_STAT_GET:
      return {.known = true, .dumps = true};
    case RDMA_NLDEV_CMD_SET:
    case RDMA_NLDEV_CMD_NEWLINK:
    case RDMA_NLDEV_CMD_DELLINK:
    case RDMA_NLDEV_CMD_SYS_SET:
    case RDMA_NLDEV_CMD_STAT_SET:
    case RDMA_NLDEV_CMD_STAT_DEL:
      return {.known = true, .admin = true};
    case RDMA_NLDEV_CMD_RES_QP_GET_RAW:
    case RDMA_NLDEV_CMD_RES_CQ_GET_RAW:
    case RDMA_NLDEV_CMD_RES_MR_GET_RAW:
      return {.known = true, .dumps = true, .admin = true};
    default:
      return {};
  }
}

// The attribute that names one object of the kind that a command is about; 0: none.
uint16_t id_of(unsigned operation) {
  switch (operation) {
    case RDMA_NLDEV_CMD_RES_QP_GET:
      return RDMA_NLDEV_ATTR_RES_LQPN;
    case RDMA_NLDEV_CMD_RES_CM_ID_GET:
      return RDMA_NLDEV_ATTR_RES_CM_IDN;
    case RDMA_NLDEV_CMD_RES_CQ_GET:
      return RDMA_NLDEV_ATTR_RES_CQN;
    case RDMA_NLDEV_CMD_RES_MR_GET:
    case RDMA_NLDEV_CMD_STAT_GET:
      return RDMA_NLDEV_ATTR_RES_MRN;
    case RDMA_NLDEV_CMD_RES_PD_GET:
      return RDMA_NLDEV_ATTR_RES_PDN;
    case RDMA_NLDEV_CMD_RES_CTX_GET:
      return RDMA_NLDEV_ATTR_RES_CTXN;
    case RDMA_NLDEV_CMD_RES_SRQ_GET:
      return RDMA_NLDEV_ATTR_RES_SRQN;
    default:
      return 0;
  }
}

bool read_number(const unsigned char* value, size_t size, uint32_t& number) {
  if (size < sizeof number) return false;
  memcpy(&number, value, sizeof number);
  return true;
}

}  // namespace

NetlinkRequest read_request(const nlmsghdr* header) {
  NetlinkRequest request;
  request.header = header;
  const unsigned client = RDMA_NL_GET_CLIENT(header->nlmsg_type);
  // The client LS answers requests of the kernel.
  request.is_request =
      header->nlmsg_type >= NLMSG_MIN_TYPE && ((header->nlmsg_flags & NLM_F_REQUEST) != 0 || client == RDMA_NL_LS);
  request.nldev = client == RDMA_NL_NLDEV;
  request.operation = RDMA_NL_GET_OP(header->nlmsg_type);
  if (request.nldev) request.command = command_of(request.operation);
  // As in the kernel, one of the two bits suffices.
  request.dump = (header->nlmsg_flags & NLM_F_DUMP) != 0;
  request.acknowledge = (header->nlmsg_flags & NLM_F_ACK) != 0;

  const auto* bytes = reinterpret_cast<const unsigned char*>(header);
  size_t at = NLMSG_HDRLEN;
  while (at + NLA_HDRLEN <= header->nlmsg_len) {
    nlattr attribute;
    memcpy(&attribute, bytes + at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > header->nlmsg_len) break;
    const unsigned char* value = bytes + at + NLA_HDRLEN;
    const size_t size = attribute.nla_len - NLA_HDRLEN;
    const auto type = static_cast<uint16_t>(attribute.nla_type & NLA_TYPE_MASK);
    if (request.nldev && type != 0 && type == id_of(request.operation)) {
      request.has_id = read_number(value, size, request.id);
    }
    switch (type) {
      case RDMA_NLDEV_ATTR_DEV_INDEX:
        request.has_index = read_number(value, size, request.index);
        break;
      case RDMA_NLDEV_ATTR_PORT_INDEX:
        request.has_port = read_number(value, size, request.port);
        break;
      case RDMA_NLDEV_ATTR_STAT_RES:
        request.has_counted = read_number(value, size, request.counted);
        break;
      case RDMA_NLDEV_ATTR_CHARDEV_TYPE:
        if (size > 0 && value[size - 1] == '\0') request.door = reinterpret_cast<const char*>(value);
        break;
      default:
        break;
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return request;
}

}  // namespace dapple::doors

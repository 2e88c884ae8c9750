// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/software_device.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include <iterator>

#include "provider/common/driver_number.hpp"
#include "provider/common/host_guards.hpp"

namespace dapple::provider {
namespace {

// Asks for the state of port 1, which every RDMA device has, in the name of a driver.
bool query_port_as(int cmd_fd, uint32_t driver_id) {
  ib_uverbs_query_port_resp_ex response = {};
  ib_uverbs_attr attributes[2] = {};
  attributes[0].attr_id = UVERBS_ATTR_QUERY_PORT_PORT_NUM;
  attributes[0].len = sizeof(attributes[0].data);
  attributes[0].flags = UVERBS_ATTR_F_MANDATORY;
  attributes[0].data = 1;  // the attribute contains a constant itself, as 64 bits
  attributes[1].attr_id = UVERBS_ATTR_QUERY_PORT_RESP;
  attributes[1].len = sizeof(response);
  attributes[1].flags = UVERBS_ATTR_F_MANDATORY;
  attributes[1].data = reinterpret_cast<uintptr_t>(&response);

  // The header ends in a flexible array, which C++ lets no other structure hold: the request is laid out by hand.
  alignas(ib_uverbs_ioctl_hdr) unsigned char request[sizeof(ib_uverbs_ioctl_hdr) + sizeof(attributes)];
  ib_uverbs_ioctl_hdr header = {};
  header.length = sizeof(request);
  header.object_id = UVERBS_OBJECT_DEVICE;
  header.method_id = UVERBS_METHOD_QUERY_PORT;
  header.num_attrs = std::size(attributes);
  header.driver_id = driver_id;
  memcpy(request, &header, sizeof(header));
  memcpy(request + sizeof(header), attributes, sizeof(attributes));
  return ioctl(cmd_fd, RDMA_VERBS_IOCTL, request) == 0;
}

}  // namespace

bool kernel_says_software_driver(int cmd_fd) {
  const ErrnoGuard keep;
  return query_port_as(cmd_fd, RDMA_DRIVER_RXE) || query_port_as(cmd_fd, RDMA_DRIVER_SIW) ||
         query_port_as(cmd_fd, kDappleDriver);
}

}  // namespace dapple::provider

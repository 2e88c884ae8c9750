// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink.hpp"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "provider/preload/doors/answers.hpp"
#include "provider/preload/doors/descriptors.hpp"
#include "provider/preload/doors/devices.hpp"
#include "provider/preload/doors/link.hpp"
#include "provider/preload/doors/real.hpp"
#include "provider/soft/identity.hpp"
#include "provider/soft/problem.hpp"

namespace dapple::doors {
namespace {

// The attributes of a request that are looked at.
struct Wanted {
  bool has_index = false;
  uint32_t index = 0;
  const char* door = "";  // "uverbs", "rdma_cm"
};

Wanted wanted_by(const nlmsghdr* request) {
  Wanted wanted;
  const auto* bytes = reinterpret_cast<const unsigned char*>(request);
  size_t at = NLMSG_HDRLEN;
  while (at + NLA_HDRLEN <= request->nlmsg_len) {
    nlattr attribute;
    memcpy(&attribute, bytes + at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > request->nlmsg_len) break;
    const unsigned char* value = bytes + at + NLA_HDRLEN;
    const size_t size = attribute.nla_len - NLA_HDRLEN;
    switch (attribute.nla_type & NLA_TYPE_MASK) {
      case RDMA_NLDEV_ATTR_DEV_INDEX:
        if (size == sizeof wanted.index) {
          memcpy(&wanted.index, value, sizeof wanted.index);
          wanted.has_index = true;
        }
        break;
      case RDMA_NLDEV_ATTR_CHARDEV_TYPE:
        if (size > 0 && value[size - 1] == '\0') wanted.door = reinterpret_cast<const char*>(value);
        break;
      default:
        break;
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return wanted;
}

void put_device(Answers& answers, const nlmsghdr* request, uint16_t flags, const soft::DeviceInfo& device) {
  answers.begin(request->nlmsg_type, flags, request->nlmsg_seq);
  answers.put_u32(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
  answers.put_text(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
  answers.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  answers.put_u64(RDMA_NLDEV_ATTR_NODE_GUID, device.guid);
  answers.put_u64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device.guid);
  answers.put_u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, RDMA_NODE_IB_CA);
  answers.put_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
  answers.end();
}

// IBTA's numbers: active or down; link up or disabled.
void put_port(Answers& answers, const nlmsghdr* request, uint16_t flags, const soft::DeviceInfo& device) {
  answers.begin(request->nlmsg_type, flags, request->nlmsg_seq);
  answers.put_u32(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
  answers.put_text(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
  answers.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  answers.put_u8(RDMA_NLDEV_ATTR_PORT_STATE, device.up != 0 ? 4 : 1);
  answers.put_u8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, device.up != 0 ? 5 : 3);
  answers.put_u32(RDMA_NLDEV_ATTR_NDEV_INDEX, device.netdev_index);
  answers.put_text(RDMA_NLDEV_ATTR_NDEV_NAME, device.netdev);
  answers.end();
}

// As the kernel encodes it for user space.
uint64_t encoded_number(uint64_t major, uint64_t minor) {
  return (minor & 0xFF) | major << 8 | (minor & ~uint64_t{0xFF}) << 12;
}

void put_door(Answers& answers, const nlmsghdr* request, uint32_t index) {
  char name[32];
  snprintf(name, sizeof name, "uverbs%u", soft::kFirstUverbs + (index - soft::kFirstDeviceIndex));
  answers.begin(request->nlmsg_type, 0, request->nlmsg_seq);
  answers.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, 1);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV, encoded_number(soft::kUverbsMajor, index - soft::kFirstDeviceIndex));
  answers.put_u32(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, soft::kDriverId);
  answers.end();
}

void put_rdma_cm(Answers& answers, const nlmsghdr* request) {
  answers.begin(request->nlmsg_type, 0, request->nlmsg_seq);
  answers.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, "rdma_cm");
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, RDMA_USER_CM_ABI_VERSION);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV, encoded_number(soft::kRdmaCmMajor, 0));
  answers.end();
}

void put_all_devices(Answers& answers, const nlmsghdr* request) {
  uint32_t indexes[soft::kMaxDevices];
  const uint32_t count = list_devices(indexes);
  for (uint32_t i = 0; i < count; ++i) {
    soft::DeviceInfo device;
    if (get_device(indexes[i], device)) put_device(answers, request, NLM_F_MULTI, device);
  }
}

// Passes the kernel's answer on, without the end of a dump. False if the kernel has no RDMA.
bool ask_kernel(Answers& answers, const nlmsghdr* request) {
  const int kernel = real.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (kernel < 0) return false;
  const bool dump = (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  sockaddr_nl nobody = {};
  nobody.nl_family = AF_NETLINK;
  bool answered = real.sendto(kernel, request, request->nlmsg_len, 0, reinterpret_cast<const sockaddr*>(&nobody),
                              sizeof nobody) == static_cast<ssize_t>(request->nlmsg_len);
  // The kernel has answered when it has taken the request; more of a dump comes as it is read.
  alignas(nlmsghdr) unsigned char bytes[16384];
  ssize_t size;
  while (answered && (size = recv(kernel, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    auto left = static_cast<unsigned>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(bytes); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      const bool end = message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR;
      if (!(dump && end)) answers.copy(message);
    }
  }
  real.close(kernel);
  return answered;
}

void put_error(Answers& answers, const nlmsghdr* request, int error) {
  answers.begin(NLMSG_ERROR, 0, request->nlmsg_seq);
  nlmsgerr body = {};
  body.error = -error;
  body.msg = *request;
  answers.put_bytes(&body, sizeof body);
  answers.end();
}

void put_done(Answers& answers, const nlmsghdr* request) {
  const int32_t code = 0;
  answers.begin(NLMSG_DONE, NLM_F_MULTI, request->nlmsg_seq);
  answers.put_bytes(&code, sizeof code);
  answers.end();
}

bool is_ours(const Wanted& wanted) {
  return wanted.has_index && wanted.index >= soft::kFirstDeviceIndex && wanted.index < soft::kFirstDeviceIndex + 65536;
}

// A request about one device of ours.
void answer_for_device(Answers& answers, const nlmsghdr* request, const Wanted& wanted) {
  soft::DeviceInfo device;
  const unsigned command = RDMA_NL_GET_OP(request->nlmsg_type);
  if (!get_device(wanted.index, device)) {
    put_error(answers, request, ENODEV);
  } else if (command == RDMA_NLDEV_CMD_GET) {
    put_device(answers, request, 0, device);
  } else if (command == RDMA_NLDEV_CMD_PORT_GET) {
    put_port(answers, request, 0, device);
  } else if (command == RDMA_NLDEV_CMD_GET_CHARDEV && strcmp(wanted.door, "uverbs") == 0) {
    put_door(answers, request, wanted.index);
  } else {
    put_error(answers, request, EOPNOTSUPP);
    return;
  }
  if ((request->nlmsg_flags & NLM_F_ACK) != 0) put_error(answers, request, 0);
}

void answer(Answers& answers, const nlmsghdr* request) {
  const bool nldev = RDMA_NL_GET_CLIENT(request->nlmsg_type) == RDMA_NL_NLDEV;
  const unsigned command = RDMA_NL_GET_OP(request->nlmsg_type);
  const bool dump = (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  const Wanted wanted = wanted_by(request);
  if (nldev && !dump && is_ours(wanted)) return answer_for_device(answers, request, wanted);
  // All devices share one rdma_cm. The kernel's rdma_cm would not know our devices.
  if (nldev && !dump && command == RDMA_NLDEV_CMD_GET_CHARDEV && !wanted.has_index &&
      strcmp(wanted.door, "rdma_cm") == 0) {
    put_rdma_cm(answers, request);
    if ((request->nlmsg_flags & NLM_F_ACK) != 0) put_error(answers, request, 0);
    return;
  }
  if (nldev && dump && is_ours(wanted)) {
    soft::DeviceInfo device;
    if (command == RDMA_NLDEV_CMD_PORT_GET && get_device(wanted.index, device)) {
      put_port(answers, request, NLM_F_MULTI, device);
    }
    return put_done(answers, request);
  }
  const bool kernel = ask_kernel(answers, request);
  if (dump) {
    if (nldev && command == RDMA_NLDEV_CMD_GET) put_all_devices(answers, request);
    put_done(answers, request);
  } else if (!kernel && nldev && command == RDMA_NLDEV_CMD_SYS_GET) {
    // fork() takes no memory away from our devices.
    answers.begin(request->nlmsg_type, 0, request->nlmsg_seq);
    answers.put_u8(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    answers.end();
  } else if (!kernel) {
    put_error(answers, request, EOPNOTSUPP);
  }
}

// libibverbs reports no reason. Keeps errno, and returns -1.
int tell_no_socket() {
  const int error = errno;
  soft::Problem problem;
  problem.set(error, "No socket for the list of devices: %s%s", strerror(error), soft::descriptor_remedy(error));
  complain(problem);
  errno = error;
  return -1;
}

}  // namespace

int netlink_socket(int type) {
  const int fd = real.socket(AF_NETLINK, type, NETLINK_USERSOCK);
  if (fd < 0) return tell_no_socket();
  if (track(fd, {.kind = Kind::kNetlink})) return fd;
  real.close(fd);
  errno = EMFILE;
  return -1;
}

int netlink_request(int fd, const void* bytes, size_t size) {
  Answers answers(fd);
  if (!answers) return tell_no_socket();
  auto left = static_cast<unsigned>(size);
  for (const auto* request = static_cast<const nlmsghdr*>(bytes); NLMSG_OK(request, left);
       request = NLMSG_NEXT(request, left)) {
    answer(answers, request);
  }
  return answers.flush() ? 0 : -1;
}

}  // namespace dapple::doors

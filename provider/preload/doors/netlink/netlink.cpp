// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink/netlink.hpp"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "provider/preload/doors/devices.hpp"
#include "provider/preload/doors/link.hpp"
#include "provider/preload/doors/listing.hpp"
#include "provider/preload/doors/netlink/answers.hpp"
#include "provider/preload/doors/netlink/capabilities.hpp"
#include "provider/preload/doors/netlink/counters.hpp"
#include "provider/preload/doors/netlink/request.hpp"
#include "provider/preload/doors/netlink/resources.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/protocol/identity.hpp"
#include "provider/system/problem.hpp"

namespace dapple::doors {
namespace {

// A result in place of an errno: the request has its answer, and nothing follows.
constexpr int kEnded = -1;

constexpr uint32_t kPort = 1;

void put_device(Answers& answers, const NetlinkRequest& request, uint16_t flags, const soft::DeviceInfo& device) {
  answers.begin(request.header->nlmsg_type, flags, request.header->nlmsg_seq);
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
void put_port(Answers& answers, const NetlinkRequest& request, uint16_t flags, const soft::DeviceInfo& device) {
  // The kernel answers a question about one port with the number of another command.
  const unsigned operation = flags != 0 ? RDMA_NLDEV_CMD_PORT_GET : RDMA_NLDEV_CMD_GET;
  const auto type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation));
  answers.begin(type, flags, request.header->nlmsg_seq);
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

void put_door(Answers& answers, const NetlinkRequest& request, uint32_t index) {
  char name[32];
  snprintf(name, sizeof name, "uverbs%u", soft::kFirstUverbs + (index - soft::kFirstDeviceIndex));
  answers.begin(request.header->nlmsg_type, 0, request.header->nlmsg_seq);
  answers.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, 1);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV, encoded_number(soft::kUverbsMajor, index - soft::kFirstDeviceIndex));
  answers.put_u32(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, soft::kDriverId);
  answers.end();
}

void put_rdma_cm(Answers& answers, const NetlinkRequest& request) {
  answers.begin(request.header->nlmsg_type, 0, request.header->nlmsg_seq);
  answers.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, "rdma_cm");
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, RDMA_USER_CM_ABI_VERSION);
  answers.put_u64(RDMA_NLDEV_ATTR_CHARDEV, encoded_number(soft::kRdmaCmMajor, 0));
  answers.end();
}

// As the kernel's netlink_ack(): with an error, the whole request, unless the program wants only its header.
void put_error(Answers& answers, const NetlinkRequest& request, int error) {
  const nlmsghdr* header = request.header;
  const bool whole = error != 0 && !answers.is_option_set(NETLINK_CAP_ACK) && answers.has_room_for(header->nlmsg_len);
  const uint32_t size = whole ? header->nlmsg_len : sizeof *header;
  const int negative = -error;
  answers.begin(NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED, header->nlmsg_seq, sizeof negative + size);
  answers.put_bytes(&negative, sizeof negative);
  answers.put_bytes(header, size);
  answers.end();
}

// The end of a dump, with the error that ended it.
int end_dump(Answers& answers, const NetlinkRequest& request, int error) {
  const int32_t code = -error;
  answers.begin(NLMSG_DONE, NLM_F_MULTI, request.header->nlmsg_seq);
  answers.put_bytes(&code, sizeof code);
  answers.end();
  return kEnded;
}

// The parts of the kernel's answer.
struct KernelsAnswer {
  bool exists = false;  // the kernel has RDMA
  bool ended = false;   // a dump's end was passed on
  int error = 0;        // of the exchange
};

// A socket of the kernel; -1 if it has no RDMA. Such a kernel starts modprobe for each of these sockets, so it is asked
// once, and again when its sysfs shows RDMA.
int kernels_socket() {
  static std::atomic<bool> is_missing{false};
  if (is_missing.load(std::memory_order_relaxed) && real.access("/sys/class/infiniband", F_OK) != 0) return -1;
  const int kernel = real.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  is_missing = kernel < 0 && errno == EPROTONOSUPPORT;
  return kernel;
}

// Passes the kernel's answer on, if it has RDMA; without the end of a dump if ours follows.
KernelsAnswer ask_kernel(Answers& answers, const NetlinkRequest& request, bool ours_follows) {
  const int kernel = kernels_socket();
  if (kernel < 0) return {};
  KernelsAnswer answer{.exists = true};
  for (const int option : {NETLINK_CAP_ACK, NETLINK_EXT_ACK}) {
    const int on = answers.is_option_set(option) ? 1 : 0;
    setsockopt(kernel, SOL_NETLINK, option, &on, sizeof on);
  }
  sockaddr_nl nobody = {};
  nobody.nl_family = AF_NETLINK;
  const nlmsghdr* header = request.header;
  const ssize_t sent =
      real.sendto(kernel, header, header->nlmsg_len, 0, reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody);
  if (sent < 0) answer.error = errno;
  // The kernel has answered when it has taken the request; more of a dump comes as it is read. Its messages are as long
  // as this room allows, and the program's may be a page.
  alignas(nlmsghdr) unsigned char bytes[8192];
  const size_t room = request.dump && sysconf(_SC_PAGESIZE) <= 4096 ? Answers::kRoom : sizeof bytes;
  ssize_t size;
  while (sent >= 0 && (size = recv(kernel, bytes, room, MSG_DONTWAIT)) > 0) {
    auto left = static_cast<size_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(bytes); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      const bool end = request.dump && (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR);
      if (end && ours_follows) continue;
      answers.copy(message);
      answer.ended |= end;
    }
  }
  real.close(kernel);
  return answer;
}

bool is_ours(const NetlinkRequest& request) {
  return request.has_index && request.index >= soft::kFirstDeviceIndex &&
         request.index < soft::kFirstDeviceIndex + 65536;
}

// 0, an errno, or kEnded.
int answer_chardev(Answers& answers, const NetlinkRequest& request) {
  if (request.door[0] == '\0') return EINVAL;
  if (strcmp(request.door, request.has_index ? "uverbs" : "rdma_cm") != 0) return EOPNOTSUPP;
  if (request.has_index) {
    device_file_asked();
    put_door(answers, request, request.index);
  } else {
    put_rdma_cm(answers, request);
  }
  return 0;
}

// A request about one device of ours, other than a dump of all devices. 0, an errno, or kEnded.
int answer_for_device(Answers& answers, const NetlinkRequest& request) {
  soft::DeviceInfo device;
  const bool wrong = !get_device(request.index, device) || (request.has_port && request.port != kPort);
  const bool listed = request.dump && request.operation == RDMA_NLDEV_CMD_PORT_GET;
  if (wrong) return request.dump ? end_dump(answers, request, EINVAL) : EINVAL;
  switch (request.operation) {
    case RDMA_NLDEV_CMD_GET:
      put_device(answers, request, 0, device);
      return 0;
    case RDMA_NLDEV_CMD_PORT_GET:
      if (!request.dump && !request.has_port) return EINVAL;
      put_port(answers, request, listed ? NLM_F_MULTI : 0, device);
      return listed ? end_dump(answers, request, 0) : 0;
    case RDMA_NLDEV_CMD_GET_CHARDEV:
      return answer_chardev(answers, request);
    case RDMA_NLDEV_CMD_RES_GET:
      return put_resource_counts(answers, request, 0, device);
    case RDMA_NLDEV_CMD_STAT_GET_STATUS:
      return answer_statistic_mode(answers, request, device);
    default:
      break;
  }
  const bool statistic = request.operation == RDMA_NLDEV_CMD_STAT_GET;
  if (!statistic && !asks_for_resources(request)) return EOPNOTSUPP;
  const int error = (statistic ? answer_statistic : answer_resources)(answers, request, device);
  return request.dump ? end_dump(answers, request, error) : error;
}

// The devices, or the numbers of their resources.
int list_all_devices(Answers& answers, const NetlinkRequest& request) {
  ask_kernel(answers, request, true);
  uint32_t indexes[soft::kMaxDevices];
  const uint32_t count = list_devices(indexes);
  for (uint32_t i = 0; i < count; ++i) {
    soft::DeviceInfo device;
    if (!get_device(indexes[i], device)) continue;
    if (request.operation == RDMA_NLDEV_CMD_GET) {
      put_device(answers, request, NLM_F_MULTI, device);
    } else {
      put_resource_counts(answers, request, NLM_F_MULTI, device);
    }
  }
  return end_dump(answers, request, 0);
}

// The answer of a kernel without RDMA that had the software device's module. 0, an errno, or kEnded.
int answer_without_kernel(Answers& answers, const NetlinkRequest& request) {
  if (!request.command.known) return EINVAL;
  if (request.command.admin) return may_administer() ? EOPNOTSUPP : EPERM;
  if (request.operation == RDMA_NLDEV_CMD_SYS_GET) {
    answers.begin(request.header->nlmsg_type, 0, request.header->nlmsg_seq);
    // Our devices belong to one network namespace each: "exclusive".
    answers.put_u8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 0);
    // fork() takes no memory away from our devices.
    answers.put_u8(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    answers.end();
    return 0;
  }
  // No device has this index, or none is named.
  return request.dump ? end_dump(answers, request, EINVAL) : EINVAL;
}

// 0, an errno, or kEnded.
int answer_request(Answers& answers, const NetlinkRequest& request) {
  if (request.command.known && (is_ours(request) || !request.has_index)) {
    // The kernel's functions for these commands list nothing.
    if (request.dump && !request.command.dumps) return EINVAL;
    const bool all = request.operation == RDMA_NLDEV_CMD_GET || request.operation == RDMA_NLDEV_CMD_RES_GET;
    if (all && request.dump) return list_all_devices(answers, request);
    // All devices share one rdma_cm. The kernel's rdma_cm would not know our devices.
    const bool asks_door = request.operation == RDMA_NLDEV_CMD_GET_CHARDEV;
    if (asks_door && !request.has_index && !request.has_port && strcmp(request.door, "rdma_cm") == 0) {
      return answer_chardev(answers, request);
    }
    if (is_ours(request)) {
      if (request.command.admin && !may_administer()) return EPERM;
      return answer_for_device(answers, request);
    }
  }
  const KernelsAnswer kernel = ask_kernel(answers, request, false);
  if (!kernel.exists) return answer_without_kernel(answers, request);
  if (kernel.error != 0) return kernel.error;
  if (request.dump && !kernel.ended) return end_dump(answers, request, 0);
  // It has acknowledged the request as well.
  return kEnded;
}

void answer(Answers& answers, const nlmsghdr* header) {
  const NetlinkRequest request = read_request(header);
  const int error = request.is_request ? answer_request(answers, request) : 0;
  if (error > 0 || (error == 0 && request.acknowledge)) put_error(answers, request, error);
}

// libibverbs reports no reason. Keeps errno, and returns -1.
int tell_no_socket() {
  const int error = errno;
  soft::Problem problem;
  problem.set(error, "cannot make a socket for the list of devices: %s%s", strerror(error),
              soft::descriptor_remedy(error));
  complain(problem);
  errno = error;
  return -1;
}

}  // namespace

int netlink_socket(int type) {
  listing_begins();
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
  const auto* at = static_cast<const unsigned char*>(bytes);
  // As in the kernel: a message that is cut off ends this, without an answer.
  while (size >= sizeof(nlmsghdr)) {
    const auto* header = reinterpret_cast<const nlmsghdr*>(at);
    if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > size) break;
    answer(answers, header);
    const size_t step = std::min<size_t>(NLMSG_ALIGN(header->nlmsg_len), size);
    at += step;
    size -= step;
  }
  return answers.flush() ? 0 : -1;
}

}  // namespace dapple::doors

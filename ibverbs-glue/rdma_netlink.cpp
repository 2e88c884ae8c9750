// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "ibverbs-glue/files.hpp"
#include "ibverbs-glue/rdma_devices.hpp"

namespace dapple::verbs {
namespace {

// The bytes of each attribute; empty if it is missing.
using Attributes = std::array<std::string_view, RDMA_NLDEV_ATTR_MAX + 1>;

std::string text_of(std::string_view attribute) {
  return std::string(attribute.substr(0, attribute.find('\0')));
}

// An unsigned number of any width; 0 if it is missing.
uint64_t number_of(std::string_view attribute) {
  const auto as = [&](auto number) {
    std::memcpy(&number, attribute.data(), sizeof number);
    return uint64_t{number};
  };
  switch (attribute.size()) {
    case 1:
      return as(uint8_t{});
    case 4:
      return as(uint32_t{});
    case 8:
      return as(uint64_t{});
    default:
      return 0;
  }
}

template <size_t kSize>
std::string name_of(const char* const (&names)[kSize], std::string_view attribute) {
  const uint64_t number = number_of(attribute);
  return attribute.data() && number < kSize ? names[number] : "";
}

// In the spelling of sysfs.
constexpr const char* kPortStates[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
constexpr const char* kPhysicalStates[] = {
    "", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};
// The values of enum rdma_driver_id.
constexpr const char* kDrivers[] = {"",       "mlx5", "mlx4",  "cxgb3",      "cxgb4", "mthca", "bnxt_re",
                                    "ocrdma", "nes",  "irdma", "vmw_pvrdma", "qedr",  "hns",   "usnic",
                                    "rxe",    "hfi1", "qib",   "efa",        "siw",   "erdma", "mana"};
static_assert(std::size(kDrivers) > RDMA_DRIVER_ERDMA);

// The attributes of a message. A malformed one ends the list.
Attributes attributes_of(std::string_view bytes) {
  Attributes found{};
  nlattr header;
  while (bytes.size() >= sizeof header) {
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) break;
    const unsigned type = header.nla_type & NLA_TYPE_MASK;
    if (type < found.size()) found[type] = bytes.substr(sizeof header, header.nla_len - sizeof header);
    bytes.remove_prefix(std::min<size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
  return found;
}

// A conversation with the kernel, or with the doors of dapple-run: one request at a time. Both put the answer, or the
// beginning of a long one, into the socket when they take the request, and the next piece when the last was read. So
// nothing waits here.
class Netlink {
 public:
  Netlink() = default;
  ~Netlink() {
    if (socket_ >= 0) ::close(socket_);
  }
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  // A kernel without RDMA starts modprobe for each such socket, so it is asked once, and again when sysfs shows RDMA.
  bool open() {
    static std::atomic<bool> is_missing{false};
    if (is_missing.load(std::memory_order_relaxed) && ::access("/sys/class/infiniband", F_OK) != 0) return false;
    socket_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    if (socket_ < 0) {
      is_missing = errno == EPROTONOSUPPORT;
      throw_at_shortage(errno);
    }
    return socket_ >= 0;
  }

  // Sends a request about one device, or about all, and calls take(attributes) for each message of the answer. False
  // if the kernel refuses it.
  template <class Take>
  bool ask(int command, uint16_t flags, const uint32_t* device, std::string_view chardev, Take take) {
    Request request;
    request.header.nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
    request.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    request.header.nlmsg_seq = ++sequence_;
    if (device) request.put(RDMA_NLDEV_ATTR_DEV_INDEX, {reinterpret_cast<const char*>(device), sizeof *device});
    // With the terminating NUL.
    if (!chardev.empty()) request.put(RDMA_NLDEV_ATTR_CHARDEV_TYPE, {chardev.data(), chardev.size() + 1});
    if (::send(socket_, &request, request.header.nlmsg_len, 0) < 0) return false;
    for (;;) {
      alignas(nlmsghdr) char bytes[16384];
      const ssize_t size = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
      if (size <= 0 || static_cast<size_t>(size) > sizeof bytes) return false;
      auto left = static_cast<unsigned>(size);
      for (auto* message = reinterpret_cast<const nlmsghdr*>(bytes); NLMSG_OK(message, left);
           message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_seq != sequence_) continue;
        if (message->nlmsg_type == NLMSG_ERROR) return false;
        if (message->nlmsg_type == NLMSG_DONE) return true;
        take(attributes_of({reinterpret_cast<const char*>(message) + NLMSG_HDRLEN, message->nlmsg_len - NLMSG_HDRLEN}));
        if (!(message->nlmsg_flags & NLM_F_MULTI)) return true;
      }
    }
  }

 private:
  struct Request {
    nlmsghdr header{.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = 0, .nlmsg_flags = 0, .nlmsg_seq = 0, .nlmsg_pid = 0};
    char attributes[32] = {};

    // Two short attributes fit.
    void put(uint16_t type, std::string_view value) {
      const nlattr attribute{.nla_len = static_cast<uint16_t>(NLA_HDRLEN + value.size()), .nla_type = type};
      char* at = attributes + (header.nlmsg_len - NLMSG_HDRLEN);
      std::memcpy(at, &attribute, sizeof attribute);
      std::memcpy(at + NLA_HDRLEN, value.data(), value.size());
      header.nlmsg_len += static_cast<uint32_t>(NLA_ALIGN(attribute.nla_len));
    }
  };

  int socket_ = -1;
  uint32_t sequence_ = 0;
};

std::string guid_text(uint64_t guid) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48 & 0xffff),
                static_cast<unsigned>(guid >> 32 & 0xffff), static_cast<unsigned>(guid >> 16 & 0xffff),
                static_cast<unsigned>(guid & 0xffff));
  return text;
}

RdmaDevice device_of(const Attributes& at) {
  RdmaDevice device;
  device.by_netlink = true;
  device.name = text_of(at[RDMA_NLDEV_ATTR_DEV_NAME]);
  device.protocol = text_of(at[RDMA_NLDEV_ATTR_DEV_PROTOCOL]);
  device.firmware = text_of(at[RDMA_NLDEV_ATTR_FW_VERSION]);
  device.node_guid = guid_text(number_of(at[RDMA_NLDEV_ATTR_NODE_GUID]));
  return device;
}

RdmaPort port_of(const Attributes& at) {
  RdmaPort port;
  port.number = static_cast<uint32_t>(number_of(at[RDMA_NLDEV_ATTR_PORT_INDEX]));
  port.state = name_of(kPortStates, at[RDMA_NLDEV_ATTR_PORT_STATE]);
  port.physical_state = name_of(kPhysicalStates, at[RDMA_NLDEV_ATTR_PORT_PHYS_STATE]);
  port.netdev = text_of(at[RDMA_NLDEV_ATTR_NDEV_NAME]);
  return port;
}

}  // namespace

std::optional<std::vector<RdmaDevice>> rdma_devices_by_netlink() {
  Netlink netlink;
  if (!netlink.open()) return std::nullopt;
  std::vector<RdmaDevice> devices;
  std::vector<uint32_t> indices;
  const bool listed = netlink.ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, nullptr, {}, [&](const Attributes& at) {
    if (!at[RDMA_NLDEV_ATTR_DEV_INDEX].data() || !at[RDMA_NLDEV_ATTR_DEV_NAME].data()) return;
    indices.push_back(static_cast<uint32_t>(number_of(at[RDMA_NLDEV_ATTR_DEV_INDEX])));
    devices.push_back(device_of(at));
  });
  if (!listed) return std::nullopt;
  // A device that disappears in between leaves only its name.
  for (size_t i = 0; i < devices.size(); ++i) {
    (void)netlink.ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, &indices[i], {},
                      [&](const Attributes& at) { devices[i].ports.push_back(port_of(at)); });
    (void)netlink.ask(RDMA_NLDEV_CMD_GET_CHARDEV, 0, &indices[i], "uverbs", [&](const Attributes& at) {
      devices[i].driver = name_of(kDrivers, at[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID]);
    });
  }
  return devices;
}

}  // namespace dapple::verbs

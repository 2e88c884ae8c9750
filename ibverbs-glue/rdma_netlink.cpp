// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>

#include "ibverbs-glue/rdma_devices.hpp"

namespace dapple::verbs {
namespace {

using Attributes = std::array<nlattr*, RDMA_NLDEV_ATTR_MAX + 1>;

struct SocketDeleter {
  void operator()(nl_sock* socket) const noexcept { nl_socket_free(socket); }
};
struct MessageDeleter {
  void operator()(nl_msg* message) const noexcept { nlmsg_free(message); }
};
using Socket = std::unique_ptr<nl_sock, SocketDeleter>;
using Message = std::unique_ptr<nl_msg, MessageDeleter>;

std::string text_of(const nlattr* attribute) {
  if (!attribute) return {};
  const auto* text = static_cast<const char*>(nla_data(attribute));
  return {text, strnlen(text, static_cast<size_t>(nla_len(attribute)))};
}

// An unsigned number of any width; 0 if there is none.
uint64_t number_of(const nlattr* attribute) {
  if (!attribute) return 0;
  switch (nla_len(attribute)) {
    case 1:
      return nla_get_u8(attribute);
    case 4:
      return nla_get_u32(attribute);
    case 8:
      return nla_get_u64(attribute);
    default:
      return 0;
  }
}

template <size_t kSize>
std::string name_of(const char* const (&names)[kSize], const nlattr* attribute) {
  const uint64_t number = number_of(attribute);
  return attribute && number < kSize ? names[number] : "";
}

// As sysfs writes them.
constexpr const char* kPortStates[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
constexpr const char* kPhysicalStates[] = {
    "", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};
// enum rdma_driver_id.
constexpr const char* kDrivers[] = {"",       "mlx5", "mlx4",  "cxgb3",      "cxgb4", "mthca", "bnxt_re",
                                    "ocrdma", "nes",  "irdma", "vmw_pvrdma", "qedr",  "hns",   "usnic",
                                    "rxe",    "hfi1", "qib",   "efa",        "siw",   "erdma", "mana"};
static_assert(std::size(kDrivers) > RDMA_DRIVER_ERDMA);

// A conversation with the kernel: one request at a time.
class Netlink {
 public:
  bool open() {
    socket_.reset(nl_socket_alloc());
    if (!socket_) throw std::bad_alloc();
    // Answers end by themselves, and an acknowledgement behind a single one would be left unread.
    nl_socket_disable_auto_ack(socket_.get());
    return nl_connect(socket_.get(), NETLINK_RDMA) == 0;
  }

  // Sends a request about one device, or about all, and calls take(attributes) for each message of the answer. False
  // if the kernel refuses it.
  template <class Take>
  bool ask(int command, int flags, const uint32_t* device, const char* chardev, Take take) {
    const Message message(nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), NLM_F_REQUEST | flags));
    if (!message) throw std::bad_alloc();
    if (device && nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *device) < 0) throw std::bad_alloc();
    if (chardev && nla_put_string(message.get(), RDMA_NLDEV_ATTR_CHARDEV_TYPE, chardev) < 0) throw std::bad_alloc();
    Answer<Take> answer{take, false};
    nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, Answer<Take>::receive, &answer);
    if (nl_send_auto(socket_.get(), message.get()) < 0) return false;
    const bool good = nl_recvmsgs_default(socket_.get()) >= 0;
    if (answer.out_of_memory) throw std::bad_alloc();
    return good;
  }

 private:
  template <class Take>
  struct Answer {
    Take& take;
    bool out_of_memory;

    // Called by the C library, through which nothing may be thrown.
    static int receive(nl_msg* message, void* argument) noexcept {
      auto& self = *static_cast<Answer*>(argument);
      Attributes attributes{};
      if (nlmsg_parse(nlmsg_hdr(message), 0, attributes.data(), RDMA_NLDEV_ATTR_MAX, nullptr) < 0) return NL_SKIP;
      try {
        self.take(attributes);
      } catch (...) {
        self.out_of_memory = true;
        return NL_STOP;
      }
      return NL_OK;
    }
  };

  Socket socket_;
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
  const bool listed = netlink.ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, nullptr, nullptr, [&](const Attributes& at) {
    if (!at[RDMA_NLDEV_ATTR_DEV_INDEX] || !at[RDMA_NLDEV_ATTR_DEV_NAME]) return;
    indices.push_back(static_cast<uint32_t>(number_of(at[RDMA_NLDEV_ATTR_DEV_INDEX])));
    devices.push_back(device_of(at));
  });
  if (!listed) return std::nullopt;
  // A device that goes in between leaves its name without the rest.
  for (size_t i = 0; i < devices.size(); ++i) {
    (void)netlink.ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, &indices[i], nullptr,
                      [&](const Attributes& at) { devices[i].ports.push_back(port_of(at)); });
    (void)netlink.ask(RDMA_NLDEV_CMD_GET_CHARDEV, 0, &indices[i], "uverbs", [&](const Attributes& at) {
      devices[i].driver = name_of(kDrivers, at[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID]);
    });
  }
  return devices;
}

}  // namespace dapple::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame_port.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/raw/checksums.hpp"

namespace dapple::soft {
namespace {

constexpr int kBufferBytes = 8 << 20;
constexpr size_t kAddresses = 12;  // the bytes of a frame before its VLAN tag
// Linux 4.20; older headers lack the name.
constexpr int kIgnoreOutgoing = 23;

bool is_lost_on_the_way(int error) {
  return error != EAGAIN && error != EMSGSIZE;
}

}  // namespace

// The memory of one arriving frame.
struct FramePort::Slot {
  iovec bytes;
  sockaddr_ll from;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(tpacket_auxdata))];
};

int open_frames(OwnedFd& made) {
  OwnedFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  made = std::move(socket);
  return 0;
}

FramePort::FramePort(uint32_t device, uint32_t netdev, uint32_t mtu)
    : device_index(device),
      netdev_index_(netdev),
      slot_size_((size_t{mtu} + kEthernetHeader + 2 * kVlanTag + 63) / 64 * 64),
      bytes_(new (std::nothrow) std::byte[slot_size_ * kFramesAtOnce]),
      slots_(new (std::nothrow) Slot[kFramesAtOnce]),
      messages_(new (std::nothrow) mmsghdr[kFramesAtOnce]) {}

FramePort::~FramePort() = default;

FramePort* FramePort::create(uint32_t device, uint32_t netdev, uint32_t mtu) {
  std::unique_ptr<FramePort> made(new (std::nothrow) FramePort(device, netdev, mtu));
  const bool is_whole =
      made != nullptr && made->bytes_ != nullptr && made->slots_ != nullptr && made->messages_ != nullptr;
  return is_whole ? made.release() : nullptr;
}

int FramePort::start(OwnedFd socket) {
  const int one = 1;
  // Without it the receiver looks at the type of each frame.
  setsockopt(socket.get(), SOL_PACKET, kIgnoreOutgoing, &one, sizeof(one));
  if (setsockopt(socket.get(), SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) != 0) return errno;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof(kBufferBytes)) != 0)
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  socket.hide();
  socket_ = std::move(socket);
  return listen(false);
}

int FramePort::listen(bool wanted) {
  // Frames of earlier flows are lost.
  while (wanted && recv(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0) {
  }
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = wanted ? htons(ETH_P_ALL) : 0;
  address.sll_ifindex = static_cast<int>(netdev_index_);
  return bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
}

int FramePort::admit(const FlowRule& rule, bool wanted) {
  packet_mreq membership = {};
  membership.mr_ifindex = static_cast<int>(netdev_index_);
  if (rule.type == IBV_FLOW_ATTR_MC_DEFAULT) {
    membership.mr_type = PACKET_MR_ALLMULTI;
  } else if (rule.type != IBV_FLOW_ATTR_NORMAL) {
    membership.mr_type = PACKET_MR_PROMISC;
  } else {
    const auto& [value, mask] = rule.match.ethernet;
    const auto is_whole = [](uint8_t byte) { return byte == 0xFF; };
    if (!std::all_of(std::begin(mask.dst_mac), std::end(mask.dst_mac), is_whole)) return 0;
    membership.mr_type = (value.dst_mac[0] & 1) != 0 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
    membership.mr_alen = sizeof(value.dst_mac);
    memcpy(membership.mr_address, value.dst_mac, sizeof(value.dst_mac));
  }
  const int option = wanted ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP;
  return setsockopt(socket_.get(), SOL_PACKET, option, &membership, sizeof(membership)) == 0 ? 0 : errno;
}

size_t FramePort::send(std::span<const iovec> frames, int& error) const {
  const CancelGuard whole;
  mmsghdr messages[kFramesAtOnce] = {};
  assert(frames.size() <= kFramesAtOnce);
  for (size_t i = 0; i < frames.size(); i++) {
    messages[i].msg_hdr.msg_iov = const_cast<iovec*>(&frames[i]);
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  size_t sent = 0;
  error = 0;
  while (sent < frames.size()) {
    const int count = sendmmsg(socket_.get(), &messages[sent], static_cast<unsigned>(frames.size() - sent), 0);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      // An interface that is down, and a full queue behind it, lose frames.
      error = errno;
      if (!is_lost_on_the_way(error)) return sent;
      error = 0;
      sent++;
    }
  }
  return sent;
}

size_t FramePort::fetch() {
  for (size_t i = 0; i < kFramesAtOnce; i++) {
    Slot& slot = slots_[i];
    // A tag that the kernel has taken out has room before the frame.
    slot.bytes = {&bytes_[i * slot_size_ + kVlanTag], slot_size_ - kVlanTag};
    messages_[i] = {};
    messages_[i].msg_hdr = {.msg_name = &slot.from,
                            .msg_namelen = sizeof(slot.from),
                            .msg_iov = &slot.bytes,
                            .msg_iovlen = 1,
                            .msg_control = slot.control,
                            .msg_controllen = sizeof(slot.control),
                            .msg_flags = 0};
  }
  const int count = recvmmsg(socket_.get(), messages_.get(), kFramesAtOnce, MSG_DONTWAIT, nullptr);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

std::span<std::byte> FramePort::fetched(size_t number) {
  const mmsghdr& message = messages_[number];
  const Slot& slot = slots_[number];
  // A longer one than the interface's MTU is one that the kernel has merged, and no NIC would bring it.
  if (slot.from.sll_pkttype == PACKET_OUTGOING || (message.msg_hdr.msg_flags & MSG_TRUNC) != 0) return {};
  std::span<std::byte> bytes(&bytes_[number * slot_size_ + kVlanTag], message.msg_len);
  const cmsghdr* control = CMSG_FIRSTHDR(&message.msg_hdr);
  if (control == nullptr || control->cmsg_type != PACKET_AUXDATA || bytes.size() < kEthernetHeader) return bytes;
  tpacket_auxdata data;
  memcpy(&data, CMSG_DATA(control), sizeof(data));
  if ((data.tp_status & TP_STATUS_VLAN_VALID) != 0) {
    std::byte* begin = bytes.data() - kVlanTag;
    memmove(begin, bytes.data(), kAddresses);
    const bool has_type = (data.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    const uint16_t tag[] = {htons(has_type ? data.tp_vlan_tpid : ETHERTYPE_VLAN), htons(data.tp_vlan_tci)};
    memcpy(begin + kAddresses, tag, sizeof(tag));
    bytes = {begin, bytes.size() + kVlanTag};
  }
  // A program of this host has left the checksum to its NIC, which is not there.
  if ((data.tp_status & TP_STATUS_CSUMNOTREADY) != 0) complete_transport_checksum(bytes);
  return bytes;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame_port.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/raw/checksums.hpp"
#include "provider/soft/raw/frame.hpp"

namespace dapple::soft {
namespace {

constexpr int kBufferBytes = 8 << 20;
constexpr size_t kAddresses = 12;  // the bytes of a frame before its VLAN tag
// Room for the longest frame of any interface: its MTU may grow at any time. Only the pages that frames reach take
// memory.
constexpr size_t kSlotSize = (kVlanTag + kLongestFrame + 63) / 64 * 64;
// Linux 4.20; older headers lack the name.
constexpr int kIgnoreOutgoing = 23;

// As virtio_net_hdr of linux/virtio_net.h, which is no C++.
struct MergedHeader {
  static constexpr uint8_t kNeedsChecksum = 1;

  uint8_t flags;
  uint8_t gso_type;  // 0: the packet is as it was on the wire
  uint16_t hdr_len, gso_size, csum_start, csum_offset;
};
static_assert(sizeof(MergedHeader) == 10);

// More than the limit of the system if the process may have that.
void set_buffer(const OwnedFd& socket, int forced_option, int option) {
  if (setsockopt(socket.get(), SOL_SOCKET, forced_option, &kBufferBytes, sizeof(kBufferBytes)) != 0)
    setsockopt(socket.get(), SOL_SOCKET, option, &kBufferBytes, sizeof(kBufferBytes));
}

// Of the frames that this host sends by the interface, the socket takes those to the interface itself and to groups.
// 0, or an errno.
int take_looped(const OwnedFd& socket, const unsigned char (&mac)[ETH_ALEN]) {
  uint32_t high;
  uint16_t low;
  memcpy(&high, mac, sizeof(high));
  memcpy(&low, mac + sizeof(high), sizeof(low));
  const auto word = [](uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t value) {
    return sock_filter{code, if_true, if_false, value};
  };
  constexpr uint16_t kSkipIfEqual = BPF_JMP | BPF_JEQ | BPF_K, kSkipIfSet = BPF_JMP | BPF_JSET | BPF_K;
  constexpr auto kType = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
  sock_filter words[] = {
      word(BPF_LD | BPF_B | BPF_ABS, 0, 0, kType),
      word(kSkipIfEqual, 0, 6, PACKET_OUTGOING),  // to "all"
      word(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
      word(kSkipIfSet, 4, 0, 1),  // to "all"
      word(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
      word(kSkipIfEqual, 0, 3, ntohl(high)),  // to "nothing"
      word(BPF_LD | BPF_H | BPF_ABS, 0, 0, sizeof(high)),
      word(kSkipIfEqual, 0, 1, ntohs(low)),     // to "nothing"
      word(BPF_RET | BPF_K, 0, 0, UINT32_MAX),  // all bytes
      word(BPF_RET | BPF_K, 0, 0, 0),           // nothing
  };
  const sock_fprog program = {std::size(words), words};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0) return 0;
  return errno;  // no refusal: the verb gives the reason
}

bool is_lost_on_the_way(int error) {
  return error != EAGAIN && error != EMSGSIZE;
}

}  // namespace

// The memory of one arriving frame, without its bytes.
struct FramePort::Slot {
  MergedHeader merged;
  iovec parts[2];
  sockaddr_ll from;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(tpacket_auxdata))];
};

int open_frames(OwnedFd& made) {
  OwnedFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;  // no refusal: the verb gives the reason
  made = std::move(socket);
  return 0;
}

FramePort::FramePort(uint32_t device, uint32_t netdev)
    : device_index(device),
      netdev_index(netdev),
      bytes_(new (std::nothrow) std::byte[kSlotSize * kFramesAtOnce]),
      slots_(new (std::nothrow) Slot[kFramesAtOnce]),
      messages_(new (std::nothrow) mmsghdr[kFramesAtOnce]) {}

FramePort::~FramePort() = default;

FramePort* FramePort::create(uint32_t device, uint32_t netdev) {
  std::unique_ptr<FramePort> made(new (std::nothrow) FramePort(device, netdev));
  const bool is_whole =
      made != nullptr && made->bytes_ != nullptr && made->slots_ != nullptr && made->messages_ != nullptr;
  return is_whole ? made.release() : nullptr;
}

int FramePort::bind_to_netdev(const OwnedFd& socket, uint16_t protocol) const {
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  address.sll_ifindex = static_cast<int>(netdev_index);
  socklen_t size = sizeof(address);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return errno;  // no refusal: the verb gives the reason
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return errno;  // no refusal: the verb gives the reason
  const bool has_ethernet = address.sll_hatype == ARPHRD_ETHER || address.sll_hatype == ARPHRD_LOOPBACK;
  return has_ethernet ? 0 : EOPNOTSUPP;  // no refusal: the verb gives the reason
}

int FramePort::start(OwnedFd& socket) {
  set_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF);
  if (const int error = bind_to_netdev(socket, 0); error != 0) return error;
  socket.hide();
  sender_ = std::move(socket);
  return 0;
}

int FramePort::listen(OwnedFd& socket) {
  const int one = 1;
  sockaddr_ll own = {};
  socklen_t size = sizeof(own);
  if (getsockname(sender_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return errno;  // no refusal: the verb gives the reason
  if (own.sll_hatype == ARPHRD_LOOPBACK) {
    // Each frame comes back by itself. Without the option the receiver looks at the type of each frame.
    setsockopt(socket.get(), SOL_PACKET, kIgnoreOutgoing, &one, sizeof(one));
  } else {
    unsigned char mac[ETH_ALEN];
    memcpy(mac, own.sll_addr, sizeof(mac));
    if (const int error = take_looped(socket, mac); error != 0) return error;
  }
  for (const int option : {PACKET_AUXDATA, PACKET_VNET_HDR}) {
    if (setsockopt(socket.get(), SOL_PACKET, option, &one, sizeof(one)) != 0)
      return errno;  // no refusal: the verb gives the reason
  }
  set_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF);
  if (const int error = bind_to_netdev(socket, ETH_P_ALL); error != 0) return error;
  socket.hide();
  receiver_ = std::move(socket);
  return 0;
}

int FramePort::admit(const FlowRule& rule, bool wanted) {
  packet_mreq membership = {};
  membership.mr_ifindex = static_cast<int>(netdev_index);
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
  if (setsockopt(receiver_.get(), SOL_PACKET, option, &membership, sizeof(membership)) == 0) return 0;
  return errno;  // no refusal: the verb gives the reason
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
    const int count = sendmmsg(sender_.get(), &messages[sent], static_cast<unsigned>(frames.size() - sent), 0);
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
    slot.parts[0] = {&slot.merged, sizeof(slot.merged)};
    // A tag that the kernel has taken out has room before the frame.
    slot.parts[1] = {&bytes_[i * kSlotSize + kVlanTag], kSlotSize - kVlanTag};
    messages_[i] = {};
    messages_[i].msg_hdr = {.msg_name = &slot.from,
                            .msg_namelen = sizeof(slot.from),
                            .msg_iov = slot.parts,
                            .msg_iovlen = std::size(slot.parts),
                            .msg_control = slot.control,
                            .msg_controllen = sizeof(slot.control),
                            .msg_flags = 0};
  }
  const int count = recvmmsg(receiver_.get(), messages_.get(), kFramesAtOnce, MSG_DONTWAIT, nullptr);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

std::span<std::byte> FramePort::fetched(size_t number) {
  const mmsghdr& message = messages_[number];
  const Slot& slot = slots_[number];
  const bool comes_again = slot.from.sll_pkttype == PACKET_OUTGOING && slot.from.sll_hatype == ARPHRD_LOOPBACK;
  if (comes_again || message.msg_len < sizeof(slot.merged)) return {};
  // The kernel has merged packets, and no NIC would bring the result.
  if (slot.merged.gso_type != 0 || (message.msg_hdr.msg_flags & MSG_TRUNC) != 0) return {};
  std::span<std::byte> bytes(&bytes_[number * kSlotSize + kVlanTag], message.msg_len - sizeof(slot.merged));
  // A program of this host has left the checksum to its NIC, which is not there. It may be that of an inner packet.
  if ((slot.merged.flags & MergedHeader::kNeedsChecksum) != 0)
    complete_open_checksum(bytes, slot.merged.csum_start, slot.merged.csum_offset);
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
  return bytes;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/udp_wire.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/network/gid.hpp"
#include "provider/network/uncancelled.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/wire/packet/crc.hpp"
#include "provider/soft/wire/packet/ip_headers.hpp"
#include "provider/system/random.hpp"
#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {
namespace {

constexpr int kUdpGro = 104;  // UDP_GRO of <linux/udp.h>
constexpr int kBufferBytes = 8 << 20;
constexpr uint32_t kDatagrams = 8;
constexpr size_t kDatagramSize = 65536;
constexpr size_t kControlSize = 256;
constexpr int kCallsAtOnce = 4;
// Bytes of merged packets that are acknowledged before those behind them are looked at. A sender's window holds two or
// three times 64 KiB, so it would wait while we work, and we would wait while it works.
constexpr size_t kMuch = 16 * 1024;
// Payload of 4,096, headers, pad, ICRC; no peer may send more.
constexpr size_t kLongestPacket = 4096 + roce::kMaxHeaderSize + roce::kIcrcSize;
constexpr size_t kShortestPacket = roce::kBthSize + roce::kIcrcSize;
constexpr uint8_t kUdOpcodes = 3;  // the upper three bits
constexpr uint32_t kMulticastQpn = 0xFFFFFF;

constexpr std::byte opcode_of(roce::Operation operation) {
  return std::byte{roce::opcode_of(roce::Transport::kRc, operation)};
}

// True for responses to requests of a reliable connection, and for what goes ahead of them.
bool is_response(std::byte opcode) {
  return (opcode >= opcode_of(roce::Operation::kReadResponseFirst) &&
          opcode <= opcode_of(roce::Operation::kAtomicAcknowledge)) ||
         opcode == std::byte{roce::kHostOpcode};
}

// `bytes` are merged packets of the size `segment`, except for the last, which begins at `last`. A peer sends an
// acknowledgement behind its own message, because the kernel cuts a datagram that way.
bool acknowledges_behind_messages(const std::byte* bytes, size_t segment, size_t last) {
  if (bytes[last] != opcode_of(roce::Operation::kAcknowledge)) return false;
  for (size_t offset = 0; offset < last; offset += segment) {
    if (is_response(bytes[offset])) return false;
  }
  return true;
}

int set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0 ? 0 : errno;
}

// `destination`: the word of the BTH with the destination QPN.
bool is_to_group(const DatagramOrigin& origin, uint32_t destination) {
  return is_multicast(origin.destination) && (ntohl(destination) & kMulticastQpn) == kMulticastQpn;
}

template <class Value>
bool control_value(const cmsghdr* header, Value& value) {
  if (header->cmsg_len < CMSG_LEN(sizeof value)) return false;
  memcpy(&value, CMSG_DATA(header), sizeof value);
  return true;
}

}  // namespace

struct UdpWire::Room {
  mmsghdr messages[kDatagrams];
  iovec parts[kDatagrams];
  sockaddr_in6 sources[kDatagrams];
  alignas(cmsghdr) char control[kDatagrams][kControlSize];
  alignas(64) std::byte bytes[kDatagrams][kDatagramSize];

  Room() {
    for (uint32_t i = 0; i < kDatagrams; i++) prepare(i);
  }
  // The kernel overwrites the sizes at each datagram.
  void prepare(uint32_t i) {
    parts[i] = {bytes[i], kDatagramSize};
    msghdr& header = messages[i].msg_hdr;
    header = {};
    header.msg_name = &sources[i];
    header.msg_namelen = sizeof sources[i];
    header.msg_iov = &parts[i];
    header.msg_iovlen = 1;
    header.msg_control = control[i];
    header.msg_controllen = kControlSize;
  }
};

// The packets of one call of receive().
struct UdpWire::Delivery final : DatagramSink {
  Delivery(UdpWire& the_wire, ArrivalSink& the_sink) : wire(the_wire), sink(the_sink) {}
  void arrived(DatagramOrigin& origin, std::span<std::byte> packet) override { wire.deliver(origin, packet, sink); }

  UdpWire& wire;
  ArrivalSink& sink;
};

std::unique_ptr<UdpWire> UdpWire::open(const Slot& slot, Problem& problem, Environment environment) {
  std::unique_ptr<UdpWire> wire(new (std::nothrow) UdpWire);
  if (wire != nullptr) wire->room_.reset(new (std::nothrow) Room);
  if (wire == nullptr || wire->room_ == nullptr) {
    problem.set(ENOMEM, "no memory for the device's wire");
    return nullptr;
  }
  wire->slot_ = slot;
  wire->slot_mask_ = htonl(0xFFFFFF & ~(qpns_of(slot.number) - 1));
  wire->slot_bits_ = htonl(first_qpn(slot.number));
  wire->counters_ = slot.counters != nullptr ? &slot.counters->wire : &wire->own_counters_;
  const bool plain = environment == Environment::kIgnored;
  return wire->prepare(problem) && (plain || wire->prepare_instruments(problem)) ? std::move(wire) : nullptr;
}

UdpWire::~UdpWire() = default;

bool UdpWire::prepare(Problem& problem) {
  const int socket = slot_.receive_socket;
  // Merging is an advantage, but not necessary.
  set(socket, IPPROTO_UDP, kUdpGro, 1);
  if (set(socket, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes) != 0) set(socket, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  int error = 0;
  if (slot_.dual_stack) {
    error = set(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  } else {
    error = set(socket, IPPROTO_IP, IP_PKTINFO, 1);
  }
  if (error != 0) {
    problem.set(error, "the slot's socket cannot report addresses: %s", strerror(error));
    return false;
  }
  send_.counters = counters_;
  return true;
}

void UdpWire::expect_datagrams() {
  if (shows_class_.exchange(true)) return;
  const int socket = slot_.receive_socket;
  if (slot_.dual_stack) {
    set(socket, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    set(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  }
  set(socket, IPPROTO_IP, IP_RECVTTL, 1);
  set(socket, IPPROTO_IP, IP_RECVTOS, 1);
}

void UdpWire::set_tap(PacketTap& tap) {
  send_.tap = &tap;
  // The tap needs the packets' hop limits and traffic classes.
  expect_datagrams();
}

bool UdpWire::prepare_instruments(Problem& problem) {
  if (!seed_is_possible(problem)) return false;
  if (const char* name = provider::settings().pcap) {
    if (!pcap_.open(name, problem)) return false;
    set_tap(pcap_);
  }
  const char* faults = provider::settings().faults;
  return faults == nullptr || prepare_faults(faults, problem);
}

bool UdpWire::prepare_faults(const char* text, Problem& problem) {
  FaultSettings settings;
  if (!parse_faults(text, settings, problem)) return false;
  if (!settings.disturbs_packets()) return true;
  faults_ = FaultInjector::create(settings, slot_.receive_socket, *counters_, problem);
  return faults_ != nullptr;
}

SendBatch* UdpWire::make_batch() {
  return new (std::nothrow) UdpBatch(send_);
}

int UdpWire::receive_fd() const {
  return faults_ != nullptr ? faults_->poll_fd() : slot_.receive_socket;
}

size_t UdpWire::receive(ArrivalSink& sink) {
  const ErrnoGuard keep;
  Room& room = *room_;
  Delivery delivery(*this, sink);
  delivered_ = delivered_bytes_ = 0;
  if (faults_ != nullptr) faults_->pass_due(delivery);
  for (int call = 0; call < kCallsAtOnce; call++) {
    assert(ask_for_ >= 1 && ask_for_ <= kDatagrams);
    const int count = receive_datagrams(slot_.receive_socket, room.messages, ask_for_);
    if (count < 0 && errno == EINTR) continue;
    const bool all = count == static_cast<int>(ask_for_);
    ask_for_ = all ? std::min(2 * ask_for_, kDatagrams) : 1;
    if (count <= 0) break;
    for (int i = 0; i < count; i++) {
      take_datagram(static_cast<uint32_t>(i), room.messages[i].msg_len, delivery);
      room.prepare(static_cast<uint32_t>(i));
    }
    // Good packets may wait behind bad ones.
    if (!all || (delivered_ > 0 && count < static_cast<int>(kDatagrams))) break;
  }
  if (delivered_ > 0) {
    counters_->received_packets.add_alone(delivered_);
    counters_->received_bytes.add_alone(delivered_bytes_);
  }
  return delivered_;
}

void UdpWire::take_datagram(uint32_t index, size_t size, Delivery& delivery) {
  msghdr& header = room_->messages[index].msg_hdr;
  const sockaddr_in6& from = room_->sources[index];
  DatagramOrigin origin = {};
  origin.hop_limit = 64;
  // The port lies at the same place for both families.
  origin.source_port = ntohs(from.sin6_port);
  if (from.sin6_family == AF_INET6) {
    memcpy(origin.source, &from.sin6_addr, 16);
  } else {
    ipv4_gid(&reinterpret_cast<const sockaddr_in&>(from).sin_addr, origin.source);
  }
  size_t segment = size;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    int number;
    in_pktinfo info;
    in6_pktinfo info6;
    const int type = control->cmsg_type;
    if (control->cmsg_level == IPPROTO_IPV6) {
      if (type == IPV6_PKTINFO && control_value(control, info6)) {
        memcpy(origin.destination, &info6.ipi6_addr, 16);
        origin.netdev_index = info6.ipi6_ifindex;
      } else if (type == IPV6_HOPLIMIT && control_value(control, number)) {
        origin.hop_limit = static_cast<uint8_t>(number);
      } else if (type == IPV6_TCLASS && control_value(control, number)) {
        origin.traffic_class = static_cast<uint8_t>(number);
      }
    } else if (control->cmsg_level == IPPROTO_IP) {
      uint8_t byte;
      if (type == IP_PKTINFO && control_value(control, info)) {
        ipv4_gid(&info.ipi_addr, origin.destination);
        origin.netdev_index = static_cast<uint32_t>(info.ipi_ifindex);
      } else if (type == IP_TTL && control_value(control, number)) {
        origin.hop_limit = static_cast<uint8_t>(number);
      } else if (type == IP_TOS && control_value(control, byte)) {
        origin.traffic_class = byte;
      }
    } else if (control->cmsg_level == IPPROTO_UDP && type == kUdpGro && control_value(control, number)) {
      if (number > 0 && static_cast<size_t>(number) < size) segment = static_cast<size_t>(number);
    }
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    counters_->giants.add();
    return;
  }
  counters_->received_batches.add_alone();
  std::byte* bytes = room_->bytes[index];
  const auto last_number = static_cast<uint32_t>(size > segment ? (size - 1) / segment : 0);
  const size_t last = last_number * segment;
  assert(size <= kDatagramSize && last <= size && size - last <= segment);
  const auto pass_at = [&](uint32_t number) {
    const size_t offset = number * segment;
    const std::span packet(bytes + offset, number == last_number ? size - last : segment);
    origin.number = number;
    if (faults_ == nullptr) {
      deliver(origin, packet, delivery.sink);
    } else {
      faults_->pass(origin, packet, delivery);
    }
  };
  // The acknowledgement goes first: a program that sees the message may count on room in its send queue at once.
  const bool last_first = last_number > 0 && acknowledges_behind_messages(bytes, segment, last);
  if (last_first) pass_at(last_number);
  for (uint32_t number = 0; number < last_number; number++) pass_at(number);
  if (!last_first) pass_at(last_number);
  if (size >= kMuch) delivery.sink.much_arrived();
}

void UdpWire::deliver(DatagramOrigin& origin, std::span<const std::byte> packet, ArrivalSink& sink) {
  if (packet.size() < kShortestPacket) return counters_->runts.add();
  if (packet.size() > kLongestPacket) return counters_->giants.add();
  if (packet.size() % 4 != 0) return counters_->unaligned.add();
  uint32_t destination;
  memcpy(&destination, packet.data() + 4, sizeof destination);
  if ((destination & slot_mask_) != slot_bits_ && !is_to_group(origin, destination)) return counters_->foreign.add();

  const std::span<const std::byte> transport = packet.first(packet.size() - roce::kIcrcSize);
  roce::IcrcAddresses addresses = origin.icrc_addresses();
  uint32_t received;
  memcpy(&received, packet.data() + transport.size(), sizeof received);
  if (origin.icrc_prefix_size != transport.size()) {
    origin.icrc_prefix_size = transport.size();
    origin.icrc_prefix = icrcs_.prefix_of(addresses, transport.size());
  }
  const uint32_t expected = roce::icrc_of(origin.icrc_prefix, transport, crc32);
  int32_t identification = 0;
  if (received != expected) {
    identification =
        addresses.ipv6 ? -1 : icrcs_.identification_of(received, expected, transport.size(), origin.number);
  }
  addresses.identification = static_cast<uint16_t>(identification < 0 ? 0 : identification);
  if (send_.tap != nullptr)
    send_.tap->write(PacketTap::Direction::kReceived, addresses, origin.traffic_class, origin.hop_limit, packet);
  if (identification < 0) return counters_->bad_icrc.add();
  if (identification > 0) {
    uint32_t peer;
    memcpy(&peer, addresses.source, sizeof peer);
    if (!identifications_.plausible(peer, addresses.identification, now_ms(CLOCK_MONOTONIC_COARSE))) {
      return counters_->identification.add();
    }
  } else if (origin.number == 0 && !addresses.ipv6) {
    // One look for all packets that the kernel merged.
    uint32_t peer;
    memcpy(&peer, addresses.source, sizeof peer);
    identifications_.note_zero(peer);
  }

  Arrival arrival;
  arrival.source = origin.source;
  arrival.destination = origin.destination;
  arrival.netdev_index = origin.netdev_index;
  arrival.transport = arrival.headers = transport;
  std::byte grh[roce::kGrhSize];
  if (static_cast<uint8_t>(packet[0]) >> 5 == kUdOpcodes) {
    write_grh(grh, addresses, origin.traffic_class, origin.hop_limit, kUdpHeaderSize + packet.size());
    arrival.grh = grh;
  }
  delivered_++;
  delivered_bytes_ += packet.size();
  sink.arrived(arrival);
}

int UdpWire::join(const uint8_t group[16], uint32_t netdev_index) {
  return groups_.join(slot_.receive_socket, slot_.dual_stack, group, netdev_index);
}

int UdpWire::leave(const uint8_t group[16], uint32_t netdev_index) {
  return groups_.leave(slot_.receive_socket, slot_.dual_stack, group, netdev_index);
}

}  // namespace dapple::soft

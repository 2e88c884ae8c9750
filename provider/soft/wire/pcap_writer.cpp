// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/pcap_writer.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <string.h>
#include <time.h>

#include "provider/records/capture_file.hpp"
#include "provider/soft/wire/packet/ip_headers.hpp"

namespace dapple::soft {
namespace {

struct RecordHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t size;
  uint32_t original_size;
};

// LINKTYPE_LINUX_SLL, big-endian. The device has no Ethernet header to show.
struct CookedHeader {
  uint16_t direction;
  uint16_t device_type;
  uint16_t address_length = 0;
  uint8_t address[8] = {};
  uint16_t protocol;
};
static_assert(sizeof(CookedHeader) == 16);

}  // namespace

bool PcapWriter::open(const char* name, Problem& problem) {
  file_ = RecordFile(open_capture_file(name, problem));
  return static_cast<bool>(file_);
}

void PcapWriter::write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class,
                       uint8_t hop_limit, std::span<const std::byte> transport) {
  std::byte headers[sizeof(CookedHeader) + kIpv6HeaderSize + kUdpHeaderSize];
  std::byte* const ip = headers + sizeof(CookedHeader);
  const size_t ip_size = write_ip_header(ip, addresses, traffic_class, hop_limit, kUdpHeaderSize + transport.size());
  write_udp_header(ip + ip_size, addresses, transport);
  const CookedHeader cooked = {
      .direction = htons(direction == Direction::kSent ? PACKET_OUTGOING : PACKET_HOST),
      .device_type = htons(ARPHRD_NONE),
      .protocol = htons(ip_size == kIpv6HeaderSize ? ETHERTYPE_IPV6 : ETHERTYPE_IP),
  };
  memcpy(headers, &cooked, sizeof cooked);
  const size_t headers_size = sizeof cooked + ip_size + kUdpHeaderSize;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const auto size = static_cast<uint32_t>(headers_size + transport.size());
  RecordHeader record = {static_cast<uint32_t>(now.tv_sec), static_cast<uint32_t>(now.tv_nsec), size, size};
  const iovec parts[] = {
      {&record, sizeof record}, {headers, headers_size}, {const_cast<std::byte*>(transport.data()), transport.size()}};
  file_.append(parts);
}

}  // namespace dapple::soft

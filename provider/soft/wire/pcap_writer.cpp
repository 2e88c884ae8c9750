// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/pcap_writer.hpp"

#include <time.h>

#include "provider/member/capture_file.hpp"
#include "provider/soft/wire/ip_headers.hpp"

namespace dapple::soft {
namespace {

struct RecordHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t size;
  uint32_t original_size;
};

}  // namespace

bool PcapWriter::open(const char* name, Problem& problem) {
  file_ = RecordFile(open_capture_file(name, problem));
  return static_cast<bool>(file_);
}

void PcapWriter::write(Direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
                       std::span<const std::byte> transport) {
  std::byte headers[kIpv6HeaderSize + kUdpHeaderSize];
  const size_t ip = write_ip_header(headers, addresses, traffic_class, hop_limit, kUdpHeaderSize + transport.size());
  write_udp_header(headers + ip, addresses, transport);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const auto size = static_cast<uint32_t>(ip + kUdpHeaderSize + transport.size());
  RecordHeader record = {static_cast<uint32_t>(now.tv_sec), static_cast<uint32_t>(now.tv_nsec), size, size};
  const iovec parts[] = {{&record, sizeof record},
                         {headers, ip + kUdpHeaderSize},
                         {const_cast<std::byte*>(transport.data()), transport.size()}};
  file_.append(parts);
}

}  // namespace dapple::soft

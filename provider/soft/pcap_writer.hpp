// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_PCAP_WRITER_HPP
#define DAPPLE_PROVIDER_SOFT_PCAP_WRITER_HPP

#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/soft/owned_fd.hpp"
#include "provider/soft/problem.hpp"
#include "roce/icrc.hpp"

namespace dapple::soft {

// Writes packets to a pcap file (link type raw IP) with the IP and UDP headers that they had on the wire, as far as a
// UDP socket knows them. Several processes may write to one file: each record is appended at once. Any thread.
class PcapWriter {
 public:
  // "%p" in the name stands for the process' number. Appends to a pcap file that is there.
  bool open(const char* name, Problem& problem);
  // `transport`: from the BTH to the ICRC.
  void write(const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
             std::span<const std::byte> transport);

 private:
  OwnedFd file_;
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_PCAP_WRITER_HPP

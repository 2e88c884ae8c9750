// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A file of Ethernet frames that tshark and scapy read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace dapple::roce::test {

class PcapFile {
 public:
  explicit PcapFile(const std::string& path);
  void write(uint64_t time_ns, std::span<const std::byte> frame);
  // Closes the file. False if not everything was written.
  bool close();

 private:
  void word(uint32_t value);

  std::ofstream out_;
};

}  // namespace dapple::roce::test

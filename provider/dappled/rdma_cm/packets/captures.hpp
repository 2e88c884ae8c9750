// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Files of programs that want to see the packets of connection management (DAPPLE_PCAP).
#pragma once

#include <sys/types.h>

#include "provider/soft/wire/pcap_writer.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled::rdma_cm {

class Captures final : public soft::PacketTap {
 public:
  static constexpr uint32_t kMax = 64;

  // Replaces the owner's earlier file. Returns 0; ENFILE; or EINVAL if it is not a regular file that is open for
  // appending: a write to another file could wait, or overwrite data.
  int add(uint32_t owner, soft::OwnedFd file);
  void remove(uint32_t owner);
  uint32_t count() const { return count_; }

  // Writes the packet once to each file, even if the file has several owners.
  void write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
             std::span<const std::byte> transport) override;

 private:
  struct Capture {
    uint32_t owner = 0;
    dev_t device = 0;
    ino_t inode = 0;
    soft::PcapWriter writer;
  };

  bool is_first(uint32_t index) const;

  uint32_t count_ = 0;
  Capture captures_[kMax];
};

}  // namespace dapple::dappled::rdma_cm

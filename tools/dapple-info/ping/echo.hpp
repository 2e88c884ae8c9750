// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "provider/system/owned_fd.hpp"
#include "tools/dapple-info/ping/ends.hpp"

namespace dapple::info {

// Unfragmented ICMP echo requests, which test whether the host answers and whether large packets reach it. The system
// allows them to root, and to the groups of net.ipv4.ping_group_range.
class Echo {
 public:
  // False if the system does not allow them.
  bool open(const Address& local, const Address& peer);
  explicit operator bool() const { return static_cast<bool>(fd_); }
  // Sends an IP datagram of this size, twice if necessary, and waits for this time after each. True if it comes back.
  bool comes_back(unsigned int datagram_size, int milliseconds);

 private:
  bool hear(uint16_t sequence, int milliseconds);

  soft::OwnedFd fd_;
  bool raw_ = false;
  bool ipv6_ = false;
  uint16_t id_ = 0;
  uint16_t sequence_ = 0;
  Address peer_{};
};

}  // namespace dapple::info

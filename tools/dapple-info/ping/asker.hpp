// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The socket for sending questions. Packets are not fragmented ("don't fragment"), and the ICMP messages of hosts and
// routers about them arrive here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "provider/system/owned_fd.hpp"
#include "tools/dapple-info/ping/ends.hpp"

namespace dapple::info {

struct Trouble {
  enum class Kind { kPortClosed, kProhibited, kUnreachable, kTooLarge };
  Kind kind = Kind::kUnreachable;
  unsigned int mtu = 0;  // for kTooLarge; 0: not reported
  std::string teller;    // its address; empty for this host itself
};

class Asker {
 public:
  // Returns 0 or an errno.
  int open(const Address& local, const Address& peer);
  int fd() const { return fd_.get(); }
  uint16_t port() const { return port_; }
  // Returns 0 or an errno.
  int send(std::span<const std::byte> packet);
  // The next ICMP message; empty if there is none.
  std::optional<Trouble> trouble();
  // Waits for the next ICMP message.
  std::optional<Trouble> trouble_within(int milliseconds);

 private:
  soft::OwnedFd fd_;
  Address peer_{};
  uint16_t port_ = 0;
};

// Holds the port of RoCE packets for a moment, at the address of the questions. Empty on failure, with errno.
soft::OwnedFd hear_at(const Address& local);

}  // namespace dapple::info

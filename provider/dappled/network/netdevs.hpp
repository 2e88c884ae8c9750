// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The network namespace's netdevs and their addresses, by rtnetlink.
#pragma once

#include <cstdint>

#include "provider/protocol/messages.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled {

// More have no place in the table of GIDs.
inline constexpr uint32_t kMaxAddresses = soft::kMaxGids - 1;

struct Netdev {
  uint32_t index = 0;
  uint32_t mtu = 0;
  char name[16] = {};
  uint8_t mac[6] = {};
  bool up = false;
  bool loopback = false;
  bool ethernet = false;
  bool enslaved = false;  // a port of a bridge, a bond, ...
  // A port of a bridge has no address of its own, and neither have tunnels that the kernel makes by itself.
  bool can_do_without_address() const { return loopback || (ethernet && !enslaved); }
  uint32_t address_count = 0;
  uint8_t addresses[kMaxAddresses][16] = {};  // IPv4 as ::ffff:a.b.c.d; IPv4 first
};

struct Netdevs {
  uint32_t count = 0;
  Netdev devices[soft::kMaxDevices];
};

// 0, or an errno. Leaves out netdevs that need an address and have none, netdevs beyond kMaxDevices, and addresses that
// cannot be used yet.
int read_netdevs(Netdevs& netdevs);

// A socket that becomes readable when netdevs or addresses change.
class NetdevWatch {
 public:
  int open();  // 0, or an errno
  int fd() const { return socket_.get(); }
  // Tells whether anything has changed since the last call.
  bool changed();

 private:
  soft::OwnedFd socket_;
};

}  // namespace dapple::dappled

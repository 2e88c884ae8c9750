// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's neighbours: the hosts on a link and their link-layer addresses (ARP, IPv6 neighbour discovery). Needs no
// privilege, and never waits for a neighbour's answer.
#pragma once

#include "provider/dappled/rdma_cm/ids/neighbour.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled::rdma_cm {

// 0 if the kernel knows the link-layer address of the neighbour on the way to the destination, or if no such address is
// needed: for this host, broadcasts, and links without link-layer addresses. Also 0 if the kernel does not report it.
// ENODATA if the kernel does not know the address; `asked`: the kernel is asking for it. Otherwise an errno, for
// example for a destination without a route.
int look_for_neighbour(const Address& source, const Address& destination, Neighbour& neighbour, bool& asked);

// Sends the neighbour an empty datagram, so that the kernel asks for its address. Returns ENODATA, or 0 if the system
// forbids the datagram: the address then counts as known.
int ask_neighbour(const Address& source, const Neighbour& neighbour);

// Tells which neighbours' addresses become known.
class NeighbourWatch {
 public:
  int open();  // 0, or an errno
  void close() { socket_.reset(); }
  bool is_open() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }

  enum class News : uint8_t {
    kNone,    // nothing to read
    kAnswer,  // `neighbour` is known now
    kOther,
    kLost,  // reports were lost
  };
  News next(Neighbour& neighbour);

 private:
  soft::OwnedFd socket_;
};

}  // namespace dapple::dappled::rdma_cm

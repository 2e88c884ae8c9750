// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's neighbours: the hosts on a link and their link-layer addresses (ARP, IPv6 neighbour discovery). Needs no
// privilege, and never waits for an answer of theirs.
#ifndef DAPPLE_PROVIDER_DAPPLED_RDMA_CM_NEIGHBOURS_HPP
#define DAPPLE_PROVIDER_DAPPLED_RDMA_CM_NEIGHBOURS_HPP

#include "provider/dappled/rdma_cm/neighbour.hpp"
#include "provider/soft/owned_fd.hpp"

namespace dapple::dappled::rdma_cm {

// 0 if the kernel knows how to reach the neighbour through which the destination is reached, or if the way there needs
// none: this host, broadcasts, links without link-layer addresses. Also 0 if the kernel does not tell. ENODATA if it
// does not know; `asked`: it is about to ask. Else an errno, as for a destination without a route.
int look_for_neighbour(const Address& source, const Address& destination, Neighbour& neighbour, bool& asked);

// Sends the neighbour an empty datagram, and the kernel has to ask for its address. ENODATA, or 0 if that is forbidden:
// nobody can tell then.
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
    kLost,  // some news have been lost
  };
  News next(Neighbour& neighbour);

 private:
  soft::OwnedFd socket_;
};

}  // namespace dapple::dappled::rdma_cm

#endif  // DAPPLE_PROVIDER_DAPPLED_RDMA_CM_NEIGHBOURS_HPP

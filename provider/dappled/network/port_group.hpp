// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// UDP port 4791 as a group of SO_REUSEPORT sockets, one for each slot. A classic BPF program steers each packet to the
// socket whose index is slot_of() the destination QPN. An index changes when a socket of the group is closed, so
// dappled and the bundle keep all sockets open while a member lives.
#pragma once

#include <cassert>
#include <cstdint>

#include "provider/dappled/network/bundle.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

class PortGroup {
 public:
  explicit PortGroup(uint16_t port = soft::kRocePort) : port_(port) {}

  // Takes the port, if it is free (else EADDRINUSE), with a few slots.
  bool create(soft::Problem& problem);
  // Restores the group of a dappled that died, from a member's bundle. Each slot stays open or idle, as it was.
  bool take_over(soft::OwnedFd writer, soft::OwnedFd queue, soft::Problem& problem);
  // Adds a few slots; no index changes. False if no slot could be added.
  bool grow(soft::Problem& problem);

  bool exists() const { return size_ != 0; }
  uint32_t size() const { return size_; }
  bool dual_stack() const { return dual_stack_; }
  int socket(uint32_t slot) const {
    assert(slot < size_);
    return sockets_[slot].get();
  }
  const Bundle& bundle() const { return bundle_; }

  // Makes a slot idle: it then drops packets. Empties it and leaves its multicast groups.
  void idle(uint32_t slot);
  // 0, or an errno.
  int open(uint32_t slot);

  void close();

 private:
  soft::OwnedFd bound_socket(bool shared, int& error) const;
  bool steer(soft::Problem& problem);
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  uint16_t port_;
  bool dual_stack_ = false;
  uint32_t size_ = 0;
  soft::OwnedFd sockets_[soft::kMaxSlots];
  Bundle bundle_;
};

}  // namespace dapple::dappled

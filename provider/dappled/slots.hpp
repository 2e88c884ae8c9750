// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The slots and their owners. Slot 0 is dappled's own, for QP 0 and 1.
#pragma once

#include <cstdint>

#include "provider/dappled/network/port_group.hpp"
#include "provider/member/counters_file.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

class Slots {
 public:
  enum class Grant { kGranted, kRefused, kPortBusy };

  // Gives a slot to a new owner. kPortBusy: programs of this user have the port, perhaps members of a dead dappled that
  // will announce themselves. kRefused: `problem` has the reason, for example a visible process that has the port
  // without being a member. The lease goes to the member.
  Grant take(uint32_t& slot, soft::OwnedFd& lease, soft::Problem& problem);
  // A member of the last dappled has this slot. The first one passes the bundle and the file of counters.
  bool announce(uint32_t slot, soft::Descriptors& handed, soft::Problem& problem);
  // The owner's connection is gone. The slot becomes free when the owner's lease is gone, too.
  void leave(uint32_t slot);
  // Checks slots whose owners have left. True while there are any.
  bool tidy();

  // Tells whether a program uses an entry of the GID table of this device.
  bool uses_gid(uint32_t device, uint32_t gid_index) const;
  // Lets all programs look again before they use an entry.
  void gids_removed();

  // Takes the port without a slot, for dappled's own packets.
  Grant take_port(soft::Problem& problem);

  PortGroup& group() { return group_; }
  const PortGroup& group() const { return group_; }
  uint32_t in_use() const;
  int counters_file() const { return counters_file_.get(); }
  const soft::CountersSum& counters() const { return counters_; }
  uint64_t takeovers() const { return takeovers_; }
  void close() { group_.close(); }

 private:
  enum class State : uint8_t { kFree, kOwned, kLeft };

  // Uses `file` for the counters, or makes one if it is invalid. Covers the first `slots` slots. 0, or an errno.
  int have_counters(soft::OwnedFd file, uint32_t slots);
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  bool have_port(Grant& grant, soft::Problem& problem);
  bool take_free(uint32_t& slot, soft::OwnedFd& lease);
  // A free one of the slots from `first` to before `end`; `last` is the one that was taken before.
  bool take_free_of(uint32_t first, uint32_t end, uint32_t& last, soft::OwnedFd& lease);
  void name_squatter(soft::Problem& problem) const;
  void find_left();
  // The slot's programs use no GID any more, and have no objects.
  void free_pages(uint32_t slot);

  PortGroup group_;
  soft::OwnedFd counters_file_;
  soft::CountersSum counters_;
  State states_[soft::kMaxSlots] = {State::kOwned};
  uint32_t last_large_ = 0;
  uint32_t last_small_ = soft::kLargeSlots - 1;
  uint64_t takeovers_ = 0;
};

}  // namespace dapple::dappled

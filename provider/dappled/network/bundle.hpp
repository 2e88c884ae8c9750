// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The bundle keeps the port's sockets alive when dappled dies: a pair of connected sockets whose queue holds them, as
// unread messages with descriptors. Every member has both ends, so any of them can hand the bundle to the next dappled.
#pragma once

#include <cstdint>
#include <span>

#include "provider/system/owned_fd.hpp"

namespace dapple::dappled {

class Bundle {
 public:
  // 0, or an errno.
  int create();
  // Appends sockets, at most kMaxMessageDescriptors; `index` is the number of those before them. All or none.
  // ETOOMANYREFS: this user's processes have too many descriptors in queues.
  int add(uint32_t index, std::span<const int> sockets);

  // Takes over the bundle that a member has passed to dappled.
  void adopt(soft::OwnedFd writer, soft::OwnedFd queue);
  // Copies of the sockets in the queue, which does not change. Returns their number; 0 if this is not a bundle, or a
  // negative errno.
  int look(soft::OwnedFd* sockets, uint32_t most) const;

  void close();
  explicit operator bool() const { return static_cast<bool>(queue_); }
  int writer() const { return writer_.get(); }
  int queue() const { return queue_.get(); }

 private:
  soft::OwnedFd writer_;
  soft::OwnedFd queue_;
};

}  // namespace dapple::dappled

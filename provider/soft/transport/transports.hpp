// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of this process' queue pairs: rings to processes of this host, and UDP.
#pragma once

#include <cstdint>

#include "provider/member/daemon_link.hpp"
#include "provider/soft/links/links.hpp"
#include "provider/soft/links/transport_table.hpp"
#include "provider/soft/placement/publication.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// The transport of a queue pair's packets.
struct ChosenTransport {
  RingTo* ring = nullptr;  // null: UDP
  uint32_t row = 0;        // in the table of transports; 0: none is chosen
};

// Internally locked.
class Transports {
 public:
  // instrumented: by the wire, so no packet may take another transport. False on failure, and `problem` has the reason.
  bool open(const Slot& slot, bool instrumented, Problem& problem);

  // Chooses the transport of the packets to a peer. leave() ends its use.
  ChosenTransport choose(const Path& path);
  // The same for a queue pair without a peer.
  ChosenTransport choose_for_datagrams();
  void leave(ChosenTransport transport);

  // The memory and the queue pairs that peers of this host reach without this process' help.
  Publication& publication() { return publication_; }
  SameHostLinks& links() { return links_; }

  // Around a fork().
  void fork_prepare() { links_.fork_prepare(); }
  void fork_parent() { links_.fork_parent(); }
  void fork_child();

 private:
  TransportTable table_;
  Publication publication_;
  SameHostLinks links_;
};

}  // namespace dapple::soft

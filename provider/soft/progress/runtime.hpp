// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The software device's part of a process: its slot, its queue pairs, and all that makes them work.
// docs/internals/progress.md tells how a thread goes through it.
//
// A child of fork() cannot use the parent's runtime: it closes the descriptors, refuses calls on the parent's contexts,
// and makes a runtime of its own when it opens a device.
#pragma once

#include <memory>

#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/soft/objects/gid_uses.hpp"
#include "provider/soft/progress/background.hpp"
#include "provider/soft/progress/daemon_watch.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/progress/planned_faults.hpp"
#include "provider/soft/progress/progress.hpp"
#include "provider/soft/progress/xrc_events.hpp"
#include "provider/soft/raw/frame_wire.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/multicast.hpp"
#include "provider/soft/transport/transports.hpp"
#include "provider/soft/xrc/xrc_table.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// Internally locked.
class Runtime {
 public:
  // The process' runtime, made at the first call; it stays for as long as the process. Null on failure, and `problem`
  // has the reason.
  static Runtime* get(Problem& problem);

  Runtime(std::unique_ptr<DaemonLink> link, std::unique_ptr<Outages> outages, std::unique_ptr<Wire> wire,
          const Slot& slot);

  Engines& engines() { return progress_.engines(); }
  Multicast& multicast() { return multicast_; }
  Transports& transports() { return transports_; }
  XrcTable& xrc() { return xrc_; }
  XrcEvents& xrc_events() { return xrc_events_; }
  DaemonWatch& daemon_watch() { return watch_; }
  ContextPorts context_ports() {
    return {watch_.link(), gid_uses_, resources_, planned_.outages(), watch_, devices_, qps_.most()};
  }

  // Tells whether a queue pair of this process could have the number.
  bool has_number(uint32_t qpn) const { return qps_.has_number(qpn); }
  // Gives a queue pair its number. 0, or ENOMEM.
  int add(Qp& qp);
  // The queue pair has its engine: from now on it receives.
  static void open(Qp& qp) { QpTable::open(qp); }
  // Afterwards the queue pair receives nothing, no peer copies for it, and only the caller's thread uses it. The caller
  // holds no lock.
  void remove(Qp& qp);
  // The same for the objects of XRC that the program has left in a device that it closes.
  void remove_xrc(const Context& context);
  // The same for all other queue pairs: call it after remove_xrc(), as another thread may end a queue pair of XRC.
  void remove_all(Context& context);

  // The process has a raw packet queue pair: from now on it receives Ethernet frames, too. 0, or an errno.
  int open_frames();
  // Calls use(frames) while nothing is received.
  template <typename Use>
  auto with_frames(Use use) {
    const auto stopped = progress_.stop_receiving();
    return use(frames_);
  }

  // Called by a thread of the program that polls: makes progress, unless another thread does so now.
  void poll() { progress_.poll(); }
  // Called by a thread of the program: processes all packets that have arrived, acknowledgements included.
  void catch_up() { progress_.catch_up(); }
  // The program is about to wait for an event: the background thread takes over at once.
  void expect_no_polls();
  // At the end of the process: sends the acknowledgements that are still held.
  void leave();

 private:
  static Runtime* make(Problem& problem);
  static void fork_prepare();
  static void fork_parent();
  static void fork_child();

  PlannedFaults planned_;
  const std::unique_ptr<Wire> wire_;
  QpTable qps_;
  XrcEvents xrc_events_;
  XrcTable xrc_;
  Multicast multicast_;
  GidUses gid_uses_;
  SlotDevices& devices_;
  ResourceRowMemory resource_rows_;
  ResourceTable resources_;
  Transports transports_;
  Wakeup wakeup_;
  DaemonWatch watch_;
  Progress progress_;
  FrameWire frames_;
  Background background_;
};

}  // namespace dapple::soft

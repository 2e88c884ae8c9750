// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The background thread. It carries out the steps of Standby, and looks after all that comes by descriptors: wake-ups,
// packets of the network, connections to processes of this host, dappled, and the ends of planned outages. It also ends
// queue pairs of XRC whose last handle was in another process.
#pragma once

#include "provider/soft/links/links.hpp"
#include "provider/soft/progress/daemon_watch.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/progress/progress.hpp"
#include "provider/soft/scheduling/handover.hpp"
#include "provider/soft/scheduling/standby.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/wire/outages.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/soft/xrc/xrc_table.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// The thread's own, but for start().
class Background {
 public:
  struct Parts {
    Progress& progress;
    const Wakeup& wakeup;
    DaemonWatch& watch;
    SameHostLinks& links;
    Outages* outages;  // null without a plan of them
    XrcTable& xrc;
  };
  explicit Background(const Parts& parts)
      : parts_(parts), engines_(parts.progress.engines()), handover_(engines_.handover) {}

  // False on failure, and `problem` has the reason. The thread ends with the process.
  bool start(Problem& problem);

 private:
  static void* run(void* background);
  [[noreturn]] void work();
  Standby::Step carry_out(const Standby::Step& step);
  Standby::Step sleep();
  // True if packets have come, or a thread polls that would take them.
  bool sleep_until(roce::Time when, bool for_packets);

  const Parts parts_;
  Engines& engines_;
  Handover& handover_;
  Standby standby_;
};

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The faults by plan that concern more than one packet or completion.
#pragma once

#include <memory>
#include <utility>

#include "provider/soft/progress/daemon_watch.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/wire/outages.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

class PlannedFaults final : public PlannedEvents {
 public:
  // If the plan has outages: puts them between `wire` and its user. False without memory, and `problem` says so.
  static bool prepare(std::unique_ptr<Wire>& wire, std::unique_ptr<Outages>& outages, Problem& problem);

  PlannedFaults(std::unique_ptr<Outages> outages, DaemonWatch& watch, const Wakeup& wakeup)
      : outages_(std::move(outages)), watch_(watch), wakeup_(wakeup) {}

  // Null if the plan has none.
  Outages* outages() const { return outages_.get(); }

  // PlannedEvents. The background thread brings the port up again.
  void take_port_down(Context& context) override;

 private:
  const std::unique_ptr<Outages> outages_;
  DaemonWatch& watch_;
  const Wakeup& wakeup_;
};

}  // namespace dapple::soft

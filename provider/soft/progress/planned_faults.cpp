// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/planned_faults.hpp"

#include <errno.h>

#include <cassert>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/wire/outage_wire.hpp"

namespace dapple::soft {

bool PlannedFaults::prepare(std::unique_ptr<Wire>& wire, std::unique_ptr<Outages>& outages, Problem& problem) {
  if (fault_plan() == nullptr || !fault_plan()->plans_outages()) return true;
  outages.reset(new (std::nothrow) Outages);
  if (outages != nullptr) wire.reset(new (std::nothrow) OutageWire(std::move(wire), *outages));
  if (outages != nullptr && wire != nullptr) return true;
  problem.set(ENOMEM, "no memory for the plan of DAPPLE_FAULTS");
  return false;
}

void PlannedFaults::take_port_down(Context& context) {
  assert(outages_ != nullptr && fault_plan() != nullptr);
  DeviceInfo device;
  if (context.look_up(device) != 0) return;
  outages_->begin(device, now_ns() + fault_plan()->last_outage_ns());
  watch_.tell_changes();
  wakeup_.wake();
}

}  // namespace dapple::soft

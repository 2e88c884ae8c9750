// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Node's part of the faults by plan.
#include <errno.h>

#include <new>

#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/progress/context.hpp"
#include "provider/soft/progress/node.hpp"
#include "provider/soft/wire/outage_wire.hpp"

namespace dapple::soft {

bool Node::prepare_outages(std::unique_ptr<Wire>& wire, std::unique_ptr<Outages>& outages, Problem& problem) {
  if (fault_plan() == nullptr || !fault_plan()->plans_outages()) return true;
  outages.reset(new (std::nothrow) Outages);
  if (outages != nullptr) wire.reset(new (std::nothrow) OutageWire(std::move(wire), *outages));
  if (outages != nullptr && wire != nullptr) return true;
  problem.set(ENOMEM, "no memory for the plan of DAPPLE_FAULTS");
  return false;
}

// After a completion that failed by plan.
void Node::fail_by_plan(Qp& qp) {
  {
    const BriefLock lock(qp.mutex);
    qp.engine->modify({.state = roce::QpState::kError}, roce::kState);
    settle_state(qp);
  }
  deliver(qp);
}

// The background thread brings the port up again.
void Node::take_port_down(Context& context) {
  DeviceInfo device;
  if (context.look_up(device) != 0) return;
  outages_->begin(device, now() + fault_plan()->last_outage_ns());
  tell_changes();
  wake();
}

void Node::deliver_planned(Qp& qp, uint32_t events) {
  if ((events & QpEvents::kPlannedError) != 0) fail_by_plan(qp);
  if ((events & QpEvents::kPlannedOutage) != 0) take_port_down(*qp.context);
}

}  // namespace dapple::soft

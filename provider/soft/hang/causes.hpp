// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Why nothing comes to a thread that waits. A cause is reported only if the state of the queues proves it.
#pragma once

#include <vector>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/hang/view.hpp"
#include "provider/soft/hang/waits.hpp"

namespace dapple::soft::hang {

// The reports about this thread: one or more. `seconds`: how long it has waited at least.
std::vector<check::Report> explain(const ThreadStack& thread, const Wait& wait, const View& view, double seconds);

// Queue pairs that still tell their peers that they have no receive: `before` is an earlier view.
std::vector<check::Report> not_ready(const View& before, const View& view);
// True if a view has queue pairs that may do so.
bool may_be_not_ready(const View& view);
// Receives that are gone while the peer waits for one; they concern a thread of the peer.
std::vector<check::Report> lost_receives(const View& view);

}  // namespace dapple::soft::hang

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <vector>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/hang/view.hpp"
#include "provider/soft/hang/waits.hpp"

namespace dapple::soft::hang {

// The events that a destroy of this thread waits for: the program has got them and never acknowledged them. `report`
// has the thread's place, and `begin` begins its text.
std::vector<check::Report> unacknowledged(const ThreadStack& thread, const Wait& wait, const View& view,
                                          const check::Report& report, const std::string& begin);

// The number of events that librdmacm has given to the program so far.
uint64_t cm_events();

}  // namespace dapple::soft::hang

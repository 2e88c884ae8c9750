// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests to the same bytes that nothing orders (--check=races).
#pragma once

#include <vector>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/races/races.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::check {

// A peer's request that reaches this queue pair races with an earlier one.
void report_race(Checker& checker, const Qp& qp, const Races::Found& found);
// Requests of this queue pair race at the memory of its peer.
void report_own_races(Checker& checker, const Qp& qp, const std::vector<Races::Told>& races);

}  // namespace dapple::soft::check

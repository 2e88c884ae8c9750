// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One process of a pair: it makes connections, exchanges bytes over each, and judges how each ended.
#pragma once

#include "tests/soak/news.hpp"
#include "tests/soak/plan.hpp"

namespace dapple::soak {

inline constexpr int kWorkerFailed = 12;

// server: this side's role. life: how often this worker has been started. Returns the process' exit code.
int work(const PairPlan& plan, uint32_t pair, bool server, uint32_t life, Shared& shared);

}  // namespace dapple::soak

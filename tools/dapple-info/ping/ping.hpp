// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info --ping: tests RoCE to a peer, and finds the reason of a failure.
#pragma once

#include <functional>
#include <string>

#include "tools/dapple-info/ping/verdict.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

// Asks the peer `count` times, then tests the MTU. Calls `tell` with a line for each step, as it happens.
PingFacts ping(const std::string& peer, unsigned int count, const std::function<void(const std::string&)>& tell);

Json ping_as_json(const PingFacts& facts);

}  // namespace dapple::info

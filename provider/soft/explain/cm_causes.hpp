// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The meanings of the events of rdma_cm about connections that failed.
#pragma once

#include <cstdint>
#include <string>

#include "provider/member/cm_voice.hpp"
#include "provider/soft/check/reports/report.hpp"

namespace dapple::soft::explain {

// A clause about the peer, or about the way to it, and what to do.
struct Cause {
  std::string clause;
  const char* remedy = "";
  check::Level level = check::Level::kWarning;
};

Cause cause_of(const CmFailure& failure);

// "RDMA_CM_EVENT_REJECTED", for example. Null for events that are no failures.
const char* name_of_failure(uint32_t event);

}  // namespace dapple::soft::explain

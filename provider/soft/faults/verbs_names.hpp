// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The names of libibverbs' constants, without their prefixes, for people who write DAPPLE_FAULTS and read traces.
#pragma once

#include <infiniband/verbs.h>

#include <string_view>

#include "roce/host/request.hpp"

namespace dapple::soft {

// IBV_WC_...
std::string_view status_name(roce::CompletionStatus status);
// kSuccess for "SUCCESS" and for a name that does not exist.
roce::CompletionStatus status_of(std::string_view name);
// IBV_WC_...
std::string_view opcode_name(roce::CompletionOpcode opcode);
// IBV_WR_...
std::string_view opcode_name(roce::SendOpcode opcode);
// IBV_WR_TAG_...
std::string_view opcode_name(ibv_ops_wr_opcode opcode);
// IBV_EVENT_...
std::string_view event_name(ibv_event_type type);
// -1 for a name that does not exist.
int event_of(std::string_view name);

}  // namespace dapple::soft

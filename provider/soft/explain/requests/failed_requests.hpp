// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace dapple::soft::explain {

// Reports a completion with an error that the program polls, unless it is a flush, or the check has reported the
// reason.
void report_failed_request(const ibv_cq* cq, uint32_t qpn, bool is_receive, uint64_t id, ibv_wc_status status);

}  // namespace dapple::soft::explain

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "provider/soft/check/reports/report.hpp"

namespace dapple::soft::hang {

// The events of librdmacm whose answer a peer waits for; a few of them. They concern no thread, since any thread may
// answer. Warnings: a program may rightly answer several peers at once, when it knows all of them.
std::vector<check::Report> unanswered_events();

}  // namespace dapple::soft::hang

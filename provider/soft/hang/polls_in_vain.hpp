// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program that waits with a time limit of its own, and not for long enough to hang.
#pragma once

#include <optional>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/hang/notes.hpp"

namespace dapple::soft::hang {

// The program is about to destroy the queue pair. A report if the calling thread has polled only its completion queue for
// at least half a second, in vain, and no request and no receive of this queue could complete.
std::optional<check::Report> polled_in_vain(Notes& notes, const Qp& qp);

}  // namespace dapple::soft::hang

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the notes tell of a queue pair that its program destroys: a wait with a time limit of the program's own is no
// hang, and may be in vain all the same.
#pragma once

#include <vector>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/hang/notes/notes.hpp"

namespace dapple::soft::hang {

// A warning if the calling thread has polled only the queue pair's completion queue for at least half a second, in
// vain, and no request and no receive of this queue could complete; and one if a peer's message was refused again and
// again, because the program has never posted a receive, or has not posted another one. The same if completions of the
// queue pair wait in its other completion queue, which nobody has polled.
std::vector<check::Report> last_look(Notes& notes, Qp& qp);

}  // namespace dapple::soft::hang

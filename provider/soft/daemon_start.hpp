// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_DAEMON_START_HPP
#define DAPPLE_PROVIDER_SOFT_DAEMON_START_HPP

#include "provider/soft/problem.hpp"

namespace dapple::soft {

// Starts dappled and waits until it listens, or until it says that another one does: true then. The program is the one
// that DAPPLE_DAPPLED names, else the one that belongs to the file that this code lies in. The calling program gets no
// SIGCHLD and no child to wait for. ESRCH: dappled ended before it could say anything.
bool start_daemon(Problem& problem);

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_DAEMON_START_HPP

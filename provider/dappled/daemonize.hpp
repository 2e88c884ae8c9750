// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::dappled {

// Continues in a new process with a session of its own, in the folder /, and ends the old process. Closes all
// descriptors except `ready` (-1: there is none), so that a reader of this program's output does not wait for the new
// process. Returns the new number of `ready`, or -1.
int daemonize(int ready);

}  // namespace dapple::dappled

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_DAPPLED_DAEMONIZE_HPP
#define DAPPLE_PROVIDER_DAPPLED_DAEMONIZE_HPP

namespace dapple::dappled {

// Leaves the session, the folder, and every descriptor but `ready` (-1: none, else it becomes its return value), so
// that a reader of this program's output does not wait for it. The caller continues in a new process, and the old
// process ends.
int daemonize(int ready);

}  // namespace dapple::dappled

#endif  // DAPPLE_PROVIDER_DAPPLED_DAEMONIZE_HPP

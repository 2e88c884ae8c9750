// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::soft {

// Over a connection to the dappled of a user who is not trusted. It gives way when its last program has ended: true if
// it has no program left, and has ended within a second.
bool idle_daemon_ends(int socket);

}  // namespace dapple::soft

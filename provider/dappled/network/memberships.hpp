// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::dappled {

// Leaves every multicast group that the socket has joined. A socket does not report its groups, so this tries all
// groups of the network namespace.
void leave_multicast_groups(int socket, bool dual_stack);

}  // namespace dapple::dappled

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::dappled {

// From now on the socket receives only the groups that it has joined itself.
void take_own_groups_only(int socket, bool dual_stack);
// The same, and the socket leaves every multicast group that it has joined. A socket does not report its groups, so
// this tries all groups of the network namespace.
void leave_multicast_groups(int socket, bool dual_stack);

}  // namespace dapple::dappled

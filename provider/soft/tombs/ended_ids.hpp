// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::soft::tombs {

// From now on reports the use of librdmacm's ids, event channels and events, and of completion channels, after their
// end, and at exit the ids that the program has left alone, if libdapple-heap.so is loaded.
void watch_ids();

}  // namespace dapple::soft::tombs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::soft::tombs {

// From now on reports the use of a librdmacm's id after rdma_destroy_id(), if libdapple-heap.so is loaded.
void watch_ids();

}  // namespace dapple::soft::tombs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/dappled/rdma_cm/ids/id.hpp"

namespace dapple::dappled::rdma_cm {

// Fills in the way from the id's address to `destination`, a peer or a multicast group. `gid_index`:
// World::gid_index().
void write_ah(const CmId& id, uint32_t gid_index, const Gid& destination, ib_uverbs_ah_attr& attributes);

// The attributes and their mask for attributes.qp_state, as the kernel's cma and ib_cm give them. 0 or an errno.
int write_qp_attributes(CmId& id, uint32_t gid_index, ib_uverbs_qp_attr& attributes);

}  // namespace dapple::dappled::rdma_cm

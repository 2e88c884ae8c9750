// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Enhanced connection establishment: both ends exchange the options that their devices offer. This device has none, so
// a queue pair never needs one of the peer's.
#include <errno.h>

#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {

int query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!usable(qp->context)) return refuse_child();
  *ece = {};
  ece->vendor_id = context_of(qp->context)->attributes().vendor_id;
  return 0;
}

// As on Mellanox' devices: options of another vendor are refused, and those that the device lacks are not used.
int set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!usable(qp->context)) return refuse_child();
  const uint32_t own = context_of(qp->context)->attributes().vendor_id;
  if (ece->comp_mask == 0 && ece->vendor_id == own) return 0;
  return refuse(EINVAL,
                "comp_mask is 0x%x and vendor_id 0x%x, and the device's vendor is 0x%x.\n"
                "Pass what ibv_query_ece() of the peer has told, and do without if the vendors differ.",
                ece->comp_mask, ece->vendor_id, own);
}

}  // namespace dapple::soft::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Verbs of features that the device lacks: they only give the reason. libibverbs itself refuses others.
#include <errno.h>

#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr*) {
  if (!usable(qp->context)) return refuse_child();
  return refuse(EOPNOTSUPP,
                "the device does not pace packets to a rate.\n"
                "Look at packet_pacing_caps of ibv_query_device_ex() first, or pace the posts.");
}

}  // namespace dapple::soft::verbs

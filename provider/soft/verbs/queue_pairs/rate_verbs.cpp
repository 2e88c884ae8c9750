// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Rates of queue pairs. As with mlx5, raw packets alone are paced.
#include <errno.h>

#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"

namespace dapple::soft::verbs {

int modify_qp_rate_limit(ibv_qp* ibv, ibv_qp_rate_limit_attr* attr) {
  if (!usable(ibv->context)) return refuse_child();
  const CancelGuard whole;
  Qp& qp = *ours<Qp>(ibv);
  if (qp.raw == nullptr) {
    return refuse(EOPNOTSUPP,
                  "the queue pair has the type %s, and the device paces raw packets alone.\n"
                  "Look at packet_pacing_caps of ibv_query_device_ex() first, or pace the posts.",
                  type_name(qp.init.qp_type));
  }
  if (attr->comp_mask != 0) return refuse(EINVAL, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask);
  const std::lock_guard modifying(qp.modifying);
  const auto state = static_cast<ibv_qp_state>(qp.state.load());
  if (const int error = check_rate(attr->rate_limit, state); error != 0) return error;
  const EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kState);
  qp.raw->pacer.set(attr->rate_limit, attr->max_burst_sz);
  return 0;
}

}  // namespace dapple::soft::verbs

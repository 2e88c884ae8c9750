// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Address handles, and multicast groups.
#include <errno.h>

#include <new>
#include <utility>

#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {

ibv_ah* create_ah(ibv_pd* ibv, ibv_ah_attr* attr) {
  if (!usable(ibv->context)) return failed(ENODEV);
  roce::AddressVector address;
  GidHold hold;
  const int error = context_of(ibv->context)->check_address(*attr, Context::Peer::kAny, address, hold);
  if (error != 0) return failed(error);
  CountedObject place = context_of(ibv->context)->objects.take(ObjectKind::kAddressHandle);
  Ah* ah = place ? new (std::nothrow) Ah : nullptr;
  if (ah == nullptr) return failed(ENOMEM);
  ah->place_in_limit = std::move(place);
  ah->address = address;
  ah->source = std::move(hold);
  ah->pd = ours<Pd>(ibv);
  ah->pd->users.fetch_add(1);
  ah->ibv.context = ibv->context;
  ah->ibv.pd = ibv;
  return &ah->ibv;
}

int destroy_ah(ibv_ah* ibv) {
  Ah* ah = ours<Ah>(ibv);
  leave(ah->pd->users);
  delete ah;
  return 0;
}

int attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  if (!usable(qp->context)) return ENODEV;
  Context* context = context_of(qp->context);
  if ((context->attributes().features & kFeatureMulticast) == 0) return EOPNOTSUPP;
  if (qp->qp_type != IBV_QPT_UD) return EINVAL;
  DeviceInfo info;
  if (const int error = context->refresh(info); error != 0) return error;
  return context->runtime.multicast().attach(*ours<Qp>(qp), gid->raw, info.netdev_index);
}

// Also when the netdev is gone, or dappled does not answer: otherwise the queue pair could never be destroyed.
int detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  if (!usable(qp->context)) return ENODEV;
  if (qp->qp_type != IBV_QPT_UD) return EINVAL;
  return context_of(qp->context)->runtime.multicast().detach(*ours<Qp>(qp), gid->raw);
}

}  // namespace dapple::soft::verbs

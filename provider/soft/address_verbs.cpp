// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Address handles, and multicast groups.
#include <errno.h>

#include <new>

#include "provider/soft/context.hpp"
#include "provider/soft/verbs.hpp"

namespace dapple::soft::verbs {

ibv_ah* create_ah(ibv_pd* ibv, ibv_ah_attr* attr) {
  if (!usable(ibv->context)) return failed(ENODEV);
  roce::AddressVector address;
  const int error = context_of(ibv->context)->check_address(*attr, address);
  if (error != 0) return failed(error);
  auto* ah = new (std::nothrow) Ah;
  if (ah == nullptr) return failed(ENOMEM);
  ah->address = address;
  ah->pd = ours<Pd>(ibv);
  ah->pd->users.fetch_add(1);
  ah->ibv.context = ibv->context;
  ah->ibv.pd = ibv;
  return &ah->ibv;
}

int destroy_ah(ibv_ah* ibv) {
  Ah* ah = ours<Ah>(ibv);
  ah->pd->users.fetch_sub(1);
  delete ah;
  return 0;
}

namespace {

int on_netdev(ibv_qp* ibv, const union ibv_gid* gid,
              int (Multicast::*change)(Qp& qp, const uint8_t group[16], uint32_t netdev_index)) {
  if (!usable(ibv->context)) return ENODEV;
  if (ibv->qp_type != IBV_QPT_UD) return EINVAL;
  DeviceInfo info;
  Context* context = context_of(ibv->context);
  const int error = context->refresh(info);
  if (error != 0) return error;
  return (context->node.multicast().*change)(*ours<Qp>(ibv), gid->raw, info.netdev_index);
}

}  // namespace

int attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  return on_netdev(qp, gid, &Multicast::attach);
}

int detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  return on_netdev(qp, gid, &Multicast::detach);
}

}  // namespace dapple::soft::verbs

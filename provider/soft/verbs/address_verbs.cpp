// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Address handles, and multicast groups.
#include <errno.h>
#include <string.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/network/address_text.hpp"
#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {
namespace {

int refuse_type(ibv_qp_type type) {
  return refuse(EINVAL,
                "the queue pair has the type %s, and only datagrams reach multicast groups.\n"
                "Use a queue pair of the type IBV_QPT_UD.",
                type_name(type));
}

int refuse_group(const ibv_gid& group, int error) {
  if (error == EINVAL) {
    return refuse(error, "%s is no multicast address.\nUse the GID of a group, of ff00::/8 or ::ffff:224.0.0.0/100.",
                  AddressText(group.raw).c_str());
  }
  if (error == ENOBUFS) {
    return refuse(error,
                  "the kernel does not let a socket join the group %s.\n"
                  "Raise net.ipv4.igmp_max_memberships, which is 20 by default.",
                  AddressText(group.raw).c_str());
  }
  return refuse(error,
                "the device cannot join the group %s: %s.\n"
                "Attach to fewer groups, and see whether the network interface has multicast.",
                AddressText(group.raw).c_str(), strerror(error));
}

// A datagram socket of librdmacm (rsocket) names its own port, by the port's LID alone. With RoCE the LID is 0.
bool is_of_rsocket(const ibv_ah_attr& attr) {
  return attr.is_global == 0 && attr.dlid == 0 && attr.port_num == 1 && check::called_by_rdma_cm(check::Stack::here());
}

// The port itself, by the first GID that the kernel has a route from. False if there is none.
bool address_own_port(Context& context, ibv_ah_attr& attr) {
  DeviceInfo info;
  if (context.look_up(info) != 0) return false;
  for (uint32_t i = 0; i < kMaxGids; i++) {
    const GidEntry& entry = info.gids[i];
    if (entry.valid == 0 || entry.type != GidType::kRoceV2) continue;
    if (entry.base_index == kDefaultGid && info.has_default_address == 0) continue;
    attr.is_global = 1;
    attr.grh = {};
    attr.grh.sgid_index = static_cast<uint8_t>(i);
    memcpy(attr.grh.dgid.raw, entry.gid, sizeof entry.gid);
    return true;
  }
  return false;
}

}  // namespace

ibv_ah* create_ah(ibv_pd* ibv, ibv_ah_attr* attr) {
  if (!usable(ibv->context)) return failed(refuse_child());
  ibv_ah_attr own_port = *attr;
  if (is_of_rsocket(*attr) && address_own_port(*context_of(ibv->context), own_port)) attr = &own_port;
  roce::AddressVector address;
  GidHold hold;
  int error = context_of(ibv->context)->check_address(*attr, Context::Peer::kAny, address, hold);
  if (error != 0) return failed(error);
  if (error = check_lives(ibv); error != 0) return failed(error);
  CountedObject counted_object = context_of(ibv->context)->objects.take(ObjectKind::kAddressHandle);
  Ah* ah = counted_object ? new (std::nothrow) Ah : nullptr;
  if (ah == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kAddressHandle));
  ah->counted_object = std::move(counted_object);
  ah->address = address;
  ah->source = std::move(hold);
  ah->pd = original_of<Pd>(ibv);
  ah->pd->users.fetch_add(1);
  ah->domain = &ah->pd->lowest();
  ah->ibv.context = ibv->context;
  ah->ibv.pd = ibv;
  return &ah->ibv;
}

int destroy_ah(ibv_ah* ibv) {
  Ah* ah = ours<Ah>(ibv);
  assert(ah->domain == &ah->pd->lowest());
  leave(ah->pd->users);
  delete ah;
  return 0;
}

int attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  if (!usable(qp->context)) return refuse_child();
  Context* context = context_of(qp->context);
  if ((context->attributes().features & kFeatureMulticast) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) has no multicast.\nUse an identity with it, or addresses of one host.");
  }
  if (qp->qp_type != IBV_QPT_UD) return refuse_type(qp->qp_type);
  DeviceInfo info;
  if (const int error = context->refresh(info); error != 0) return error;
  const int error = context->runtime.multicast().attach(*ours<Qp>(qp), gid->raw, info.netdev_index);
  return error == 0 ? 0 : refuse_group(*gid, error);
}

// Also when the netdev is gone, or dappled does not answer: otherwise the queue pair could never be destroyed.
int detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  if (!usable(qp->context)) return refuse_child();
  if (qp->qp_type != IBV_QPT_UD) return refuse_type(qp->qp_type);
  const int error = context_of(qp->context)->runtime.multicast().detach(*ours<Qp>(qp), gid->raw);
  if (error == 0) return 0;
  return refuse(error,
                "the queue pair is not attached to the group %s.\nDetach from the groups that it is attached to.",
                AddressText(gid->raw).c_str());
}

}  // namespace dapple::soft::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory windows.
#include <errno.h>

#include <new>
#include <utility>

#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"

namespace dapple::soft::verbs {

ibv_mw* alloc_mw(ibv_pd* ibv, ibv_mw_type type) {
  if (!usable(ibv->context)) return failed(ENODEV);
  if ((context_of(ibv->context)->attributes().features & kFeatureMemoryWindows) == 0) return failed(EOPNOTSUPP);
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return failed(EINVAL);
  Pd* pd = ours<Pd>(ibv);
  CountedObject place = context_of(ibv->context)->objects.take(ObjectKind::kWindow);
  Mw* mw = place ? new (std::nothrow) Mw : nullptr;
  if (mw == nullptr) return failed(ENOMEM);
  mw->place_in_limit = std::move(place);
  uint32_t key = 0;
  const int error =
      context_of(ibv->context)
          ->memory.add_window(pd->number, type == IBV_MW_TYPE_1 ? WindowType::kType1 : WindowType::kType2, key);
  if (error != 0) {
    delete mw;
    return failed(error);
  }
  pd->users.fetch_add(1);
  mw->pd = pd;
  mw->ibv.context = ibv->context;
  mw->ibv.pd = ibv;
  mw->ibv.rkey = key;
  mw->ibv.handle = key >> 8;
  mw->ibv.type = type;
  return &mw->ibv;
}

// IBTA 11.2.10.14: posts the bind. The window has its new key as soon as the call returns, as ibv_bind_mw() documents.
// A bind that is not possible completes with IBV_WC_MW_BIND_ERR (IBTA 11.6.2): its turn may come when the region or the
// window has changed.
int bind_mw(ibv_qp* ibv_qp, ibv_mw* mw, ibv_mw_bind* bind) {
  if (!usable(ibv_qp->context)) return ENODEV;
  const ibv_mw_bind_info& info = bind->bind_info;
  if (mw->context != ibv_qp->context || ibv_qp->qp_type == IBV_QPT_UD) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  if ((info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0) return EINVAL;
  Qp& qp = *ours<Qp>(ibv_qp);
  roce::SendRequest request;
  request.id = bind->wr_id;
  request.opcode = roce::SendOpcode::kBindWindow;
  request.flags = static_cast<uint8_t>(bind->send_flags);
  request.bind = window_bind(*mw, ibv_inc_rkey(mw->rkey), info);
  const int error = post_one(qp, request);
  if (error == 0) mw->rkey = request.bind.new_rkey;
  return error;
}

int dealloc_mw(ibv_mw* ibv) {
  if (!usable(ibv->context)) return ENODEV;
  const int error = context_of(ibv->context)->memory.remove_window(ibv->rkey);
  if (error != 0) return error;
  Mw* mw = ours<Mw>(ibv);
  leave(mw->pd->users);
  delete mw;
  return 0;
}

}  // namespace dapple::soft::verbs

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
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/weak_order/waits.hpp"

namespace dapple::soft::verbs {

ibv_mw* alloc_mw(ibv_pd* ibv, ibv_mw_type type) {
  if (!usable(ibv->context)) return failed(refuse_child());
  if ((context_of(ibv->context)->attributes().features & kFeatureMemoryWindows) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) has no memory windows.\n"
                         "Look at IBV_DEVICE_MEM_WINDOW in device_cap_flags first."));
  }
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    return failed(refuse(EINVAL, "the type is %d.\nPass IBV_MW_TYPE_1 or IBV_MW_TYPE_2.", type));
  }
  if (const int error = check_lives(ibv); error != 0) return failed(error);
  Pd* pd = original_of<Pd>(ibv);
  CountedObject counted_object = context_of(ibv->context)->objects.take(ObjectKind::kWindow);
  Mw* mw = counted_object ? new (std::nothrow) Mw : nullptr;
  if (mw == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kWindow));
  mw->counted_object = std::move(counted_object);
  uint32_t key = 0;
  const int error =
      context_of(ibv->context)
          ->memory.add_window(pd->number, type == IBV_MW_TYPE_1 ? WindowType::kType1 : WindowType::kType2, key);
  if (error != 0) {
    delete mw;
    return failed(error == ENOMEM ? refuse_memory("memory windows") : error);
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
  if (!usable(ibv_qp->context)) return refuse_child();
  // The bind ends the old key, by which other queue pairs may have brought bytes.
  kept_bytes.await();
  const ibv_mw_bind_info& info = bind->bind_info;
  if (ibv_qp->qp_type == IBV_QPT_UD) {
    return refuse(EINVAL,
                  "the queue pair has the type UD, and only connections bind memory windows.\n"
                  "Use a queue pair of the type IBV_QPT_RC or IBV_QPT_UC.");
  }
  if (mw->context != ibv_qp->context) {
    return refuse(EINVAL,
                  "the memory window and the queue pair belong to two open devices.\n"
                  "Make both with one ibv_context.");
  }
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) {
    return refuse(EINVAL,
                  "bind_info.mr is null, and bind_info.length is %llu.\n"
                  "Set bind_info.mr to the memory region, or addr and length to 0 to unbind the window.",
                  static_cast<unsigned long long>(info.length));
  }
  if ((info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0) {
    return refuse(EINVAL,
                  "bind_info.mw_access_flags has IBV_ACCESS_ZERO_BASED, which no window of type 1 can have.\n"
                  "Use a memory window of type 2, or leave the flag out.");
  }
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
  if (!usable(ibv->context)) return refuse_child();
  kept_bytes.await();
  const int error = context_of(ibv->context)->memory.remove_window(ibv->rkey);
  if (error != 0) {
    return refuse(error,
                  "no memory window of the device has the key 0x%x.\n"
                  "Change rkey of the struct ibv_mw only by a bind, and deallocate a window once.",
                  ibv->rkey);
  }
  Mw* mw = ours<Mw>(ibv);
  leave(mw->pd->users);
  delete mw;
  return 0;
}

}  // namespace dapple::soft::verbs

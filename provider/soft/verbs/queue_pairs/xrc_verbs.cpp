// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// XRC domains, and the handles of their receiving queue pairs.
#include <errno.h>
#include <fcntl.h>

#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/qp_checks.hpp"
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"
#include "provider/soft/verbs/queue_pairs/xrc_handles.hpp"
#include "provider/soft/xrc/absent_objects.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::verbs {
namespace {

XrcTable& table_of(const Context& context) {
  return context.runtime.xrc();
}

int refuse_opening(XrcTable::Opened opened, int fd, const Problem& problem) {
  switch (opened) {
    case XrcTable::Opened::kDone:
      return 0;
    case XrcTable::Opened::kMissing:  // EAGAIN as the kernel
      return refuse(EAGAIN,
                    "no process has the XRC domain for the file of the descriptor %d open, and oflags lacks O_CREAT.\n"
                    "Set O_CREAT in oflags. Processes share a domain if they have the same file, RDMA device, network "
                    "namespace and user.",
                    fd);
    case XrcTable::Opened::kExists:
      return refuse(EINVAL,
                    "an XRC domain for the file of the descriptor %d is open, and oflags has O_EXCL.\n"
                    "Leave O_EXCL out to share the domain, or use another file.",
                    fd);
    case XrcTable::Opened::kFailed:
      return refuse(problem.error != 0 ? problem.error : EIO,
                    "processes cannot share the domain of the descriptor %d: %s.\n"
                    "Remove this obstacle, or pass the descriptor -1 for a domain of this call's own.",
                    fd, problem.line);
    case XrcTable::Opened::kNoMemory:
      break;
  }
  return refuse_memory("XRC domains, or no descriptor");
}

int open_domain(Xrcd& xrcd, const ibv_xrcd_init_attr& attr) {
  // dappled is asked, while other threads wait for the same locks.
  const CancelGuard whole;
  XrcTable& table = table_of(*xrcd.context);
  Problem problem;
  if (attr.fd == -1) return refuse_opening(table.open_private(xrcd), -1, problem);
  FileInode file;
  if (const int mode = fcntl(attr.fd, F_GETFL); mode < 0 || (mode & O_PATH) != 0 || !file.read(attr.fd)) {
    return refuse(EBADF,
                  "fd is %d, which is no open descriptor, or has O_PATH.\n"
                  "Pass the descriptor of the file that names the XRC domain, or -1 for a domain of this call's own.",
                  attr.fd);
  }
  const XrcTable::Opening opening = {.inode = {xrcd.context->device_index, file},
                                     .fd = attr.fd,
                                     .creates = (attr.oflags & O_CREAT) != 0,
                                     .is_new = (attr.oflags & O_EXCL) != 0};
  DaemonLink& link = xrcd.context->runtime.daemon_watch().link();
  return refuse_opening(table.open_shared(xrcd, opening, link, problem), attr.fd, problem);
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  if (!usable(context)) return failed(refuse_child());
  if (const int error = check_xrc(context); error != 0) return failed(error);
  constexpr uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr->comp_mask != kNeeded) {
    return failed(refuse(attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED ? EOPNOTSUPP : EINVAL,
                         "comp_mask is 0x%x.\n"
                         "Set fd and oflags, and comp_mask to IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS.",
                         attr->comp_mask));
  }
  std::unique_ptr<Xrcd> xrcd(new (std::nothrow) Xrcd);
  if (xrcd == nullptr) return failed(refuse_memory("XRC domains"));
  xrcd->context = context_of(context);
  xrcd->abi.xrcd.context = context;
  if (const int error = open_domain(*xrcd, *attr); error != 0) return failed(error);
  xrcd->context->live_objects.fetch_add(1);
  return &xrcd.release()->abi.xrcd;
}

int close_xrcd(ibv_xrcd* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Xrcd* xrcd = ours<Xrcd>(ibv);
  if (const uint32_t users = xrcd->users.load(); users != 0) {
    return refuse(EBUSY,
                  "%u shared receive queues and queue pairs of the XRC domain are left.\nDestroy these objects first.",
                  users);
  }
  {
    const CancelGuard whole;
    table_of(*xrcd->context).close(*xrcd);
  }
  leave(xrcd->context->live_objects);
  delete xrcd;
  return 0;
}

// --- Receiving queue pairs

namespace {

bool take_part(Qp& qp, Xrcd& xrcd) {
  assert(qp.xrc == nullptr && xrcd.domain != nullptr);
  auto* made = new (std::nothrow) XrcQp(table_of(*qp.context), *xrcd.domain, xrcd, qp.context->seen_memory(), qp);
  if (made == nullptr) return false;
  qp.xrc = {made, [](XrcQp* each) { delete each; }};
  return true;
}

}  // namespace

int join_xrc(Qp& qp, Xrcd& xrcd) {
  if (!take_part(qp, xrcd)) return refuse_memory("queue pairs");
  if (qp.xrc->table.admit(*qp.xrc)) return 0;
  return refuse(ENOMEM,
                "the process has %u receiving queue pairs in this XRC domain, the limit for a domain that processes "
                "share.\nDestroy some, use the domain of another file, or pass the descriptor -1 for a domain of this "
                "process alone.",
                kMaxXrcGuests);
}

namespace {

// Nobody uses the queue pair any more.
void destroy(Qp& qp) {
  Context& context = *qp.context;
  {
    const CancelGuard whole;
    qp.runtime->remove(qp);
  }
  leave(qp.recv_cq->users);
  leave(qp.send_cq->users);
  leave(qp.pd->users);
  assert(qp.xrc->has_ended && qp.scheduling.pins.load() == 0);
  const auto parts = std::move(qp.xrc);
  delete &qp;
  leave(context.live_queue_pairs);
  // From here on another thread may end the domain and the context.
  parts->table.ended(*parts);
}

}  // namespace

void show_to_domain(Qp& qp) {
  qp.runtime->xrc_events().end_by(destroy);
  qp.xrc->xrcd.users.fetch_add(1);
  qp.xrc->table.add(qp);
}

void show_to_program(Qp& qp, ibv_pd* pd) {
  ibv_qp& shown = qp.abi.qp;
  shown.context = qp.context->ibv;
  shown.qp_context = qp.init.qp_context;
  shown.pd = pd;
  shown.send_cq = qp.init.send_cq;
  shown.recv_cq = qp.init.recv_cq;
  shown.srq = qp.init.srq;
  shown.handle = qp.qpn;
  shown.qp_num = qp.qpn;
  shown.state = IBV_QPS_RESET;
  shown.qp_type = qp.init.qp_type;
  pthread_mutex_init(&shown.mutex, nullptr);
  pthread_cond_init(&shown.cond, nullptr);
  qp.context->live_queue_pairs.fetch_add(1);
}

namespace {

// A handle has an engine that stays in RESET, so that each call of the program finds one.
bool equip_handle(Qp& handle, uint32_t qpn) {
  handle.qpn = qpn;
  handle.scheduling.ends = true;
  if (handle.own_receives.initialize(0, 0) != 0) return false;
  return make_engine(handle, 0);
}

int refuse_open(const ibv_qp_open_attr& attr, SharedXrcDomain::Asked asked) {
  if (asked == SharedXrcDomain::Asked::kLater) {
    return refuse(ETIMEDOUT, "the process of queue pair 0x%x does not answer.\nLook whether this process is stopped.",
                  attr.qp_num);
  }
  if (asked == SharedXrcDomain::Asked::kNoMemory) return refuse_memory("queue pairs");
  if (asked == SharedXrcDomain::Asked::kNoRoom) {
    return refuse(ENOMEM,
                  "the process of queue pair 0x%x has no room for another handle of this process.\n"
                  "Destroy handles of the queue pair that this process does not need.",
                  attr.qp_num);
  }
  return refuse(EINVAL,
                "the XRC domain has no queue pair 0x%x of the type IBV_QPT_XRC_RECV.\n"
                "Pass the qp_num of a queue pair that lives, and an xrcd of the same file.",
                attr.qp_num);
}

}  // namespace

ibv_qp* open_qp(ibv_context* ibv, ibv_qp_open_attr* attr) {
  if (!usable(ibv)) return failed(refuse_child());
  if (const int error = check_xrc(ibv); error != 0) return failed(error);
  constexpr uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) {
    return failed(refuse(attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED ? EOPNOTSUPP : EINVAL,
                         "comp_mask is 0x%x.\n"
                         "Set qp_num, xrcd and qp_type, with IBV_QP_OPEN_ATTR_NUM, _XRCD and _TYPE; qp_context, with "
                         "_CONTEXT, may be left out.",
                         attr->comp_mask));
  }
  if (attr->qp_type != IBV_QPT_XRC_RECV || attr->xrcd->context != ibv) {
    return failed(refuse(
        EINVAL, "%s.\nOpen queue pairs of the type IBV_QPT_XRC_RECV, by an xrcd of the same ibv_context.",
        attr->qp_type != IBV_QPT_XRC_RECV ? "qp_type is not IBV_QPT_XRC_RECV" : "xrcd belongs to another open device"));
  }
  Context& context = *context_of(ibv);
  std::unique_ptr<Qp> handle(new (std::nothrow) Qp);
  if (handle == nullptr) return failed(refuse_memory("queue pairs"));
  handle->context = &context;
  handle->runtime = &context.runtime;
  handle->init.qp_type = attr->qp_type;
  handle->init.qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
  handle->pd = &absent_pd();
  handle->domain = handle->pd;
  handle->send_cq = handle->recv_cq = &absent_cq();
  Xrcd& xrcd = *ours<Xrcd>(attr->xrcd);
  if (!take_part(*handle, xrcd) || !equip_handle(*handle, attr->qp_num)) return failed(refuse_memory("queue pairs"));
  show_to_program(*handle, nullptr);
  if (handle->xrc->table.open(attr->qp_num, *handle)) {
    handle->abi.qp.state = static_cast<ibv_qp_state>(meant_by(*handle).state.load());
  } else {
    uint32_t state = 0;
    const SharedXrcDomain::Asked asked = handle->xrc->table.open_elsewhere(attr->qp_num, *handle, state);
    if (asked != SharedXrcDomain::Asked::kAnswered) {
      leave(context.live_queue_pairs);
      return failed(refuse_open(*attr, asked));
    }
    handle->abi.qp.state = state <= IBV_QPS_ERR ? static_cast<ibv_qp_state>(state) : IBV_QPS_UNKNOWN;
  }
  xrcd.users.fetch_add(1);
  return &handle.release()->abi.qp;
}

void close_xrc_qp(Qp& handle) {
  assert(handle.xrc != nullptr);
  const bool is_handle = handle.xrc->is_handle;
  Context& context = *handle.context;
  Xrcd& xrcd = handle.xrc->xrcd;
  XrcTable& table = handle.xrc->table;
  Qp* last = nullptr;
  if (is_handle) {
    last = table.close(handle);
  } else {
    table.silence(handle);
  }
  context.withdraw(&handle.abi, handle.event_count);
  ibv_qp& shown = handle.abi.qp;
  wait_for_acknowledgements(shown.mutex, shown.cond, shown.events_completed, handle.event_count);
  pthread_cond_destroy(&shown.cond);
  pthread_mutex_destroy(&shown.mutex);
  // From here on another thread may end the queue pair, and with it the first handle.
  if (!is_handle) last = table.close(handle);
  if (last != nullptr) destroy(*last);
  if (is_handle) {
    delete &handle;
    leave(context.live_queue_pairs);
  }
  leave(xrcd.users);
}

}  // namespace dapple::soft::verbs

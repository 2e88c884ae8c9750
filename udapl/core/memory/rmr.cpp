// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/memory/rmr.hpp"

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

unsigned int to_access(const Binding& target) {
  unsigned int access = 0;
  if (target.privileges & kRemoteRead) access |= IBV_ACCESS_REMOTE_READ;
  if (target.privileges & kRemoteWrite) access |= IBV_ACCESS_REMOTE_WRITE;
  if (target.privileges & kRemoteAtomic) access |= IBV_ACCESS_REMOTE_ATOMIC;
  if (target.zero_based) access |= IBV_ACCESS_ZERO_BASED;
  return access;
}

// The local rights that an LMR needs for a window with these rights for peers.
uint32_t needed_privileges(uint32_t remote) {
  uint32_t local = 0;
  if (remote & kRemoteRead) local |= kLocalRead;
  if (remote & (kRemoteWrite | kRemoteAtomic)) local |= kLocalWrite;
  return local;
}

}  // namespace

Rmr::Rmr(Ia& ia, Pz& pz, verbs::Mw mw, ibv_mw_type type)
    : Object(ia.tables().live, kKind, &ia), pz_(pz), mw_type_(type), mw_(std::move(mw)) {
  ia.windows().add(*this);
}

Result<Rmr*> Rmr::create(Ia& ia, Pz& pz, bool for_ep) {
  if (!ia.has_type_2_windows() && (for_ep || !ia.has_type_1_windows())) return fail(Type::kModelNotSupported);
  const ibv_mw_type type = for_ep || !ia.has_type_1_windows() ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
  verbs::Mw mw(ibv_alloc_mw(pz.pd(), type));
  if (!mw) return fail_errno(errno);
  Rmr* rmr = arena<Rmr>().create(ia, pz, std::move(mw), type);
  ia.adopt(*rmr);
  return rmr;
}

Result<> Rmr::free(Rmr& rmr) {
  if (int error = verbs::destroy(rmr.mw_)) return fail_errno(error);
  rmr.ia().windows().remove(rmr);
  rmr.ia().destroy(rmr);
  return {};
}

Result<> Rmr::check(const Ep& ep, const BindRequest& request) const {
  if (request.target.privileges & ~uint32_t{kAllPrivileges | kRemoteAtomic}) {
    return refuse(Subtype::kPrivileges, "it has unknown flags");
  }
  if (request.flags & ~ep.request_flags()) return refuse(Subtype::kFlags, kForeignFlags);
  if (!ep.evds().request || !ep.evds().request->has(kEvdRmrBind)) return fail(Type::kInvalidState);
  if (ep.pz() != &pz()) return fail(Type::kProtectionViolation);
  if (request.target.length == 0) return {};
  const Lmr& lmr = *request.target.lmr;
  if (lmr.context() != request.target.lmr_context || !lmr.contains(request.target.address, request.target.length)) {
    return refuse(Subtype::kSegments, "its bytes are not all in the LMR, or its lmr_context is another one's");
  }
  if (&lmr.pz() != &pz()) return fail(Type::kProtectionViolation);
  const uint32_t needed = needed_privileges(request.target.privileges);
  if (!lmr.bindable() || (lmr.attr().privileges & needed) != needed) return fail(Type::kPrivilegesViolation);
  // IBTA 10.6.7.2.2: only a type 2 window can begin at zero.
  if (request.target.zero_based && !for_ep()) return fail(Type::kModelNotSupported);
  return {};
}

Result<uint32_t> Rmr::bind(Ep& ep, const BindRequest& request) {
  WindowTable& windows = ia().windows();
  const NoCancel whole;
  const auto guard = windows.binding();
  if (auto good = check(ep, request); !good) return tl::unexpected(good.error());
  if (!mw_ && !windows.provide_window(*this)) return fail(Type::kInsufficientResources, Subtype::kMemoryRegion);
  // For the device a type 2 window belongs to the queue pair on which it was bound, and no other one can invalidate it.
  // So a new window takes its place there.
  const Ep* const last = windows.state(*this).bound_on;
  const bool moves = for_ep() && last && last != &ep;
  verbs::Mw other;  // the new window, and then the old one if the bind is posted
  if (moves) {
    other.reset(ibv_alloc_mw(pz().pd(), mw_type_));
    if (!other) return fail(Type::kInsufficientResources, Subtype::kMemoryRegion);
    windows.exchange_window(*this, other);
  }
  // The target is recorded before posting, because the completion of a bind that fails at once must find it to undo it.
  const auto before = windows.begin(*this, ep, request.target);
  uint32_t context = 0;
  if (auto posted = post_bind(ep, request, before.binding.lmr && !moves, context); !posted) {
    if (moves) windows.exchange_window(*this, other);
    // A type 2 window that was bound may have been invalidated although the bind could not be posted.
    if (for_ep() && context == 0) {
      windows.unbind(*this);
    } else {
      windows.undo(*this, before);
    }
    return tl::unexpected(posted.error());
  }
  windows.set_context(*this, context);
  return context;
}

// On failure, context is 0 if the earlier binding was lost, and any other value if nothing has changed.
Result<> Rmr::post_bind(Ep& ep, const BindRequest& request, bool was_bound, uint32_t& context) {
  const uint32_t old = mw_->rkey;
  ibv_send_wr invalidate{};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.invalidate_rkey = old;
  context = old;
  if (for_ep() && request.target.length == 0) {
    // A device refuses to invalidate a window that is not bound. An RDMA Write of 0 bytes completes in its turn, too.
    ibv_send_wr nothing{};
    nothing.opcode = IBV_WR_RDMA_WRITE;
    const bool has_nothing_to_do = !was_bound && ia().rules().ignores_key_of_empty_write;
    ibv_send_wr& unbind = has_nothing_to_do ? nothing : invalidate;
    if (auto posted = ep.post_window(unbind, *this, request.cookie, request.flags); !posted) return posted;
    context = 0;
    return {};
  }
  if (for_ep() && was_bound) {
    if (auto posted = ep.post_window_invalidate(invalidate); !posted) return posted;
    context = 0;
  }
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw.mw = mw_.get();
  bind.bind_mw.rkey = ibv_inc_rkey(old);
  if (request.target.length) {
    bind.bind_mw.bind_info = {request.target.lmr->mr(), request.target.address, request.target.length,
                              to_access(request.target)};
  }
  if (auto posted = ep.post_window(bind, *this, request.cookie, request.flags); !posted) return posted;
  if (for_ep()) mw_->rkey = bind.bind_mw.rkey;  // for a type 1 window libibverbs has done this
  context = request.target.length ? mw_->rkey : 0;
  return {};
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Binding and invalidating memory windows, and reading into them.
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {

Result<> Ep::post_window(ibv_send_wr& wr, Rmr& rmr, uint64_t cookie, uint32_t flags) {
  return post_request(wr, {}, cookie, DtoOperation::kBind, flags, &rmr);
}

Result<> Ep::post_window_invalidate(ibv_send_wr& wr) {
  return post_request(wr, {}, 0, DtoOperation::kInvalidate, kSuppress);
}

int Ep::submit(ibv_send_wr& wr) {
  if (wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.mw->type == IBV_MW_TYPE_1) [[unlikely]] {
    // The provider chooses a type 1 window's rkey, so it has a separate call.
    ibv_mw_bind bind{};
    bind.wr_id = wr.wr_id;
    bind.send_flags = wr.send_flags;
    bind.bind_info = wr.bind_mw.bind_info;
    // Verbs allows a null region in an unbind, but rxe's provider dereferences it.
    ibv_mr none{};
    none.context = qp_->context;
    none.pd = wr.bind_mw.mw->pd;
    if (!bind.bind_info.mr) bind.bind_info.mr = &none;
    return ibv_bind_mw(qp_.get(), wr.bind_mw.mw, &bind);
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp_.get(), &wr, &bad);
}

Result<> Ep::post_send_with_invalidate(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t context,
                                       uint32_t flags) {
  if (!ia().has_send_with_invalidate()) return fail(Type::kModelNotSupported);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = context;
  if (auto fits = check_request(segments, attr_.max_request_iov, flags); !fits) return fits;
  return post_request(wr, segments, cookie, DtoOperation::kSend, flags);
}

// Verbs names the sink of a read by lkey, so a window stands for the part of the region to which it is bound.
Result<> Ep::post_rdma_read_to_rmr(const RemoteBuffer& sink, uint64_t cookie, const RemoteBuffer& remote,
                                   uint32_t flags) {
  if (flags & ~request_flags()) return refuse(Subtype::kFlags, kForeignFlags);
  if (!pz_) return tl::unexpected(state_error());
  const auto window = ia().windows().find(sink.context, *pz_);
  if (!window) return fail(Type::kProtectionViolation);
  if (!(window->privileges & kRemoteWrite)) return fail(Type::kPrivilegesViolation);
  const uint64_t base = window->zero_based ? 0 : window->address;
  if (sink.address < base || sink.length > window->length || sink.address - base > window->length - sink.length) {
    return fail(Type::kProtectionViolation);
  }
  if (sink.length > ia().port_attr().max_msg_sz)
    return refuse(Subtype::kSegments, "the segment has more bytes than a message of the device");
  const ibv_sge segment{sink.address - base + window->address, static_cast<uint32_t>(sink.length), window->lmr_context};
  return post_rdma_read({&segment, 1}, cookie, remote, flags);
}

}  // namespace dapple::udapl

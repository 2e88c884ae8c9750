// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests of the InfiniBand extensions: atomics and datagrams.
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/ep_post_fast.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {

namespace {

constexpr uint32_t kWord = 8;  // bytes an atomic works on: IBTA 9.4.5

}  // namespace

Result<> Ep::post_atomic(DtoOperation operation, const ibv_sge& result, uint64_t cookie, const RemoteBuffer& remote,
                         uint64_t add_or_compare, uint64_t swap, uint32_t flags) {
  if (!ia().has_atomics()) return fail(Type::kModelNotSupported);
  // The segments may be longer than the word; consumers pass whole buffers.
  if (result.length < kWord || remote.length < kWord) return fail(Type::kLengthError);
  ibv_send_wr wr{};
  wr.opcode = operation == DtoOperation::kFetchAndAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.compare_add = add_or_compare;
  wr.wr.atomic.swap = swap;
  wr.wr.atomic.remote_addr = remote.address;
  wr.wr.atomic.rkey = remote.context;
  const ibv_sge word{result.addr, kWord, result.lkey};
  return post_request(wr, {&word, 1}, cookie, operation, flags);
}

Result<> Ep::post_send_ud(std::span<const ibv_sge> segments, uint64_t cookie, ibv_ah* address, uint32_t qp_num,
                          uint32_t flags) {
  if (!datagrams_) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  if (segments.size() > attr_.max_request_iov) return refuse_above(Subtype::kSegmentCount, attr_.max_request_iov);
  if (!datagrams_->has_address(address)) return refuse(Subtype::kAddress, "it is no address of an event of this EP");
  if (flags & ~request_flags()) return refuse(Subtype::kFlags, kForeignFlags);
  if (total_length(segments) > ia().mtu()) return fail(Type::kLengthError);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud.ah = address;
  wr.wr.ud.remote_qpn = qp_num;
  wr.wr.ud.remote_qkey = Datagrams::kQkey;
  return post_request(wr, segments, cookie, DtoOperation::kSendUd, flags);
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/progress/plain_sends.hpp"
#include "provider/soft/transport/post.hpp"

#include <errno.h>
#include <string.h>

#include <cassert>
#include <new>

#include "provider/common/segment_at.hpp"
#include "provider/soft/explain/requests/explained_operations.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/post_refusals.hpp"

namespace dapple::soft {
namespace {

using roce::SendOpcode;

static_assert(static_cast<int>(SendOpcode::kWrite) == IBV_WR_RDMA_WRITE);
static_assert(static_cast<int>(SendOpcode::kWriteImmediate) == IBV_WR_RDMA_WRITE_WITH_IMM);
static_assert(static_cast<int>(SendOpcode::kSend) == IBV_WR_SEND);
static_assert(static_cast<int>(SendOpcode::kSendImmediate) == IBV_WR_SEND_WITH_IMM);
static_assert(static_cast<int>(SendOpcode::kRead) == IBV_WR_RDMA_READ);
static_assert(static_cast<int>(SendOpcode::kCompareSwap) == IBV_WR_ATOMIC_CMP_AND_SWP);
static_assert(static_cast<int>(SendOpcode::kFetchAdd) == IBV_WR_ATOMIC_FETCH_AND_ADD);
static_assert(static_cast<int>(SendOpcode::kLocalInvalidate) == IBV_WR_LOCAL_INV);
static_assert(static_cast<int>(SendOpcode::kBindWindow) == IBV_WR_BIND_MW);
static_assert(static_cast<int>(SendOpcode::kSendInvalidate) == IBV_WR_SEND_WITH_INV);
static_assert(static_cast<int>(SendOpcode::kAtomicWrite) == IBV_WR_ATOMIC_WRITE);

// The eight bytes that an atomic write takes along.
bool take_word(Qp& qp, const ibv_send_wr& wr, roce::SendRequest& request) {
  if (wr.num_sge != 1) return false;
  const ibv_sge segment = provider::segment_at(wr.sg_list, 0);
  if (segment.length != sizeof(request.atomic_write)) return false;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    memcpy(&request.atomic_write, reinterpret_cast<const void*>(segment.addr), sizeof(request.atomic_write));
    return true;
  }
  return qp.context->seen_memory().gather({qp.pd->number, qp.qpn}, request.segments, 0,
                                          reinterpret_cast<std::byte*>(&request.atomic_write),
                                          sizeof(request.atomic_write)) == roce::Fault::kNone;
}

// IBTA 10.6.7.2: only a connection binds windows, and windows of type 1 are bound by a verb of their own. The window
// has its new key as soon as the request is posted, as after ibv_bind_mw(): a program may have chosen the lowest byte
// alone.
[[gnu::noinline]] int convert_bind(Qp& qp, const ibv_send_wr& wr, roce::SendRequest& request) {
  ibv_mw* window = wr.bind_mw.mw;
  const bool is_possible = qp.init.qp_type != IBV_QPT_UD && window != nullptr && window->type == IBV_MW_TYPE_2 &&
                           window->context == qp.context->ibv;
  if (!is_possible) return refuse_bind(qp, window);
  request.bind = window_bind(*window, wr.bind_mw.rkey, wr.bind_mw.bind_info);
  const roce::PostError refused = qp.engine->check_send(request, 0);
  if (refused != roce::PostError::kNone) return refuse_send(qp, request, refused);
  window->rkey = request.bind.new_rkey;
  return 0;
}

template <bool kSanitized>
int convert(Qp& qp, const ibv_send_wr& wr, roce::SendRequest& request) {
  if (!segments_of(wr.sg_list, wr.num_sge, request.segments)) return refuse_segments(wr.num_sge);
  request.id = wr.wr_id;
  request.opcode = static_cast<SendOpcode>(wr.opcode);
  request.flags = static_cast<uint8_t>(wr.send_flags & kSendFlags);
  if (kSanitized && (wr.send_flags & IBV_SEND_INLINE) != 0) {
    for (const roce::Segment& segment : request.segments)
      watch_inline(qp, reinterpret_cast<const void*>(segment.address), segment.length);
  }
  if (qp.init.qp_type == IBV_QPT_XRC_SEND) [[unlikely]]
    request.remote_srq = wr.qp_type.xrc.remote_srqn;
  switch (static_cast<int>(wr.opcode)) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      request.immediate_or_rkey = wr.imm_data;
      if (qp.init.qp_type != IBV_QPT_UD) return 0;
      if (wr.wr.ud.ah == nullptr) {
        return refuse(EINVAL,
                      "wr.ud.ah is null, and each datagram needs an address.\n"
                      "Set wr.ud.ah to the address handle of ibv_create_ah().");
      }
      set_destination(qp, request, *wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
      return 0;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      request.immediate_or_rkey = wr.imm_data;
      return 0;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
      request.immediate_or_rkey = wr.imm_data;
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wr.wr.rdma.rkey;
      if (wr.opcode != IBV_WR_ATOMIC_WRITE) return 0;
      if (!take_word(qp, wr, request)) {
        return refuse(EINVAL,
                      "an atomic write has one segment of 8 bytes that its lkey covers.\n"
                      "Set num_sge to 1, and length to 8, and use the lkey of the segment's memory.");
      }
      request.segments = {};
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.rkey = wr.wr.atomic.rkey;
      request.compare_or_add = wr.wr.atomic.compare_add;
      request.swap = wr.wr.atomic.swap;
      return 0;
    case IBV_WR_BIND_MW:
      return convert_bind(qp, wr, request);
    default:
      return refuse(EINVAL,
                    "the opcode is %d, which the device lacks.\n"
                    "Initialize opcode, and use a constant of enum ibv_wr_opcode.",
                    static_cast<int>(wr.opcode));
  }
}

}  // namespace

const ibv_sge* aligned_copy(const ibv_sge* list, int count) {
  assert(count <= static_cast<int>(roce::kMaxSegments));
  static thread_local ibv_sge copy[roce::kMaxSegments];
  for (int i = 0; i < count; ++i) copy[i] = provider::segment_at(list, i);
  return copy;
}

int error_of(roce::PostError error) {
  switch (error) {
    case roce::PostError::kNone:
      return 0;
    case roce::PostError::kFull:
      return ENOMEM;  // no refusal: refuse_send() gives the reason
    default:
      return EINVAL;  // no refusal: refuse_send() gives the reason
  }
}

void watch_inline(const Qp& qp, const void* memory, size_t size) {
  Sanitizer* sanitizer = Sanitizer::of_program();
  if (sanitizer == nullptr) return;
  const DeviceAccess access = {
      .who = {qp.pd->number, qp.qpn}, .kind = DeviceAccess::Kind::kRead, .what = "inline bytes of a post"};
  sanitizer->before(access, memory, size);
}

int post_one(Qp& qp, roce::SendRequest& request) {
  EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kPost);
  const roce::PostError refused = post_to_engine<true>(qp, request);
  if (refused == roce::PostError::kNone) return 0;
  turn.ends_by(EngineTurn::End::kTell);
  return refuse_send(qp, request, refused);
}

roce::WindowBind window_bind(const ibv_mw& mw, uint32_t new_rkey, const ibv_mw_bind_info& info) {
  constexpr uint32_t kProgramsByte = 0xFF;
  return {
      .window_rkey = mw.rkey,
      .new_rkey = (mw.rkey & ~kProgramsByte) | (new_rkey & kProgramsByte),
      .region_lkey = info.mr == nullptr ? 0 : info.mr->lkey,
      .access = info.mw_access_flags,
      .address = info.addr,
      .length = info.length,
  };
}

void set_destination(const Qp& qp, roce::SendRequest& request, const ibv_ah& ah, uint32_t remote_qpn,
                     uint32_t remote_qkey) {
  const Ah& address = *reinterpret_cast<const Ah*>(&ah);
  request.address = address.address;
  // C10-10: the handle and the queue pair have one protection domain.
  request.address.is_foreign = address.domain != qp.domain;
  request.remote_qpn = remote_qpn;
  request.remote_qkey = remote_qkey;
}

// Inlined into post_recv(), because programs post one receive for each message.
template <bool kSanitized>
[[gnu::always_inline]] inline int post_receives(ReceiveQueue& queue, AnnouncedQueue* announced,
                                                const ibv_recv_wr* requests, ibv_recv_wr** bad) {
  for (const ibv_recv_wr* wr = requests; wr != nullptr; wr = wr->next) {
    int error = 0;
    std::span<const roce::Segment> segments;
    const auto make_mark = [&] {
      return kSanitized && announced != nullptr ? announced->post(segments, true) : uint16_t{0};
    };
    if (!segments_of(wr->sg_list, wr->num_sge, segments)) [[unlikely]] {
      error = refuse_segments(wr->num_sge);
    } else if (error = queue.post(wr->wr_id, segments, make_mark); error == 0) {
      continue;
    } else {
      refuse_receive(queue, segments.size(), error);
    }
    *bad = const_cast<ibv_recv_wr*>(wr);
    return error;
  }
  return 0;
}
template int post_receives<false>(ReceiveQueue&, AnnouncedQueue*, const ibv_recv_wr*, ibv_recv_wr**);
template int post_receives<true>(ReceiveQueue&, AnnouncedQueue*, const ibv_recv_wr*, ibv_recv_wr**);

namespace {

// 0 or an errno; then *bad is the request that is not posted.
template <bool kSanitized>
[[gnu::always_inline]] inline int post_list(Qp& qp, ibv_send_wr* requests, ibv_send_wr** bad) {
  EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kPost);
  if (!kSanitized) requests = post_plain_sends(qp.runtime->engines(), qp, requests);
  if (requests == nullptr) {
    turn.ends_by(EngineTurn::End::kWake);
    return 0;
  }
  for (ibv_send_wr* wr = requests; wr != nullptr; wr = wr->next) {
    roce::SendRequest request;
    int error = convert<kSanitized>(qp, *wr, request);
    const roce::PostError refused = error == 0 ? post_to_engine<kSanitized>(qp, request) : roce::PostError::kNone;
    if (refused != roce::PostError::kNone) error = refuse_send(qp, request, refused);
    if (error == 0) continue;
    *bad = wr;
    return error;
  }
  return 0;
}

}  // namespace

namespace verbs {

// Programs under --explain call the function of plain programs. If they had one of their own, the compiler would inline
// less in both.
template <Program kProgram>
[[gnu::noinline]] int post_send(ibv_qp* ibv, ibv_send_wr* requests, ibv_send_wr** bad) {
  if constexpr (kProgram == Program::kExplained) {
    const int error = post_send<Program::kPlain>(ibv, requests, bad);
    if (error != 0 || ibv->qp_type == IBV_QPT_UD) [[unlikely]]
      explain::explain_sends(ibv, requests, error == 0 ? nullptr : *bad, error);
    return error;
  }
  if (!usable(ibv->context)) {
    *bad = requests;
    return refused(refuse_child());
  }
  Qp& qp = *ours<Qp>(ibv);
  if (requests == nullptr) return 0;
  const int error = post_list<kProgram == Program::kSanitized>(qp, requests, bad);
  return error == 0 ? 0 : refused(error);
}

template int post_send<Program::kPlain>(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
template int post_send<Program::kSanitized>(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
template int post_send<Program::kExplained>(ibv_qp*, ibv_send_wr*, ibv_send_wr**);

template <Program kProgram>
int post_recv(ibv_qp* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const auto ends_with = [&](int error) {
    if constexpr (kProgram == Program::kExplained) explain::explain_receives(ibv, error);
    return refused(error);
  };
  Qp& qp = *ours<Qp>(ibv);
  if (!usable(ibv->context)) {
    *bad = requests;
    return ends_with(refuse_child());
  }
  if (qp.srq != nullptr || qp.state.load() == roce::QpState::kReset) {
    *bad = requests;
    return ends_with(refuse_receives(qp));
  }
  constexpr bool kSanitized = kProgram == Program::kSanitized;
  const int error = post_receives<kSanitized>(qp.own_receives, qp.layers.announced_receives.get(), requests, bad);
  if (qp.state.load(std::memory_order_seq_cst) == roce::QpState::kError) {
    const EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kTell);
    qp.engine->receives_posted();
  }
  if (error == 0) return 0;
  return ends_with(takes_receives(qp) ? error : refuse_receives(qp));
}
template int post_recv<Program::kPlain>(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
template int post_recv<Program::kSanitized>(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
template int post_recv<Program::kExplained>(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);

}  // namespace verbs
}  // namespace dapple::soft

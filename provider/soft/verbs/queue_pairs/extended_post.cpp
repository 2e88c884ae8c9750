// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/extended_post.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <new>

#include "provider/soft/abi/extended_qp.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/sanitizers/watched.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/verbs/queue_pairs/post_refusals.hpp"

namespace dapple::soft {
namespace {

using roce::SendOpcode;
using Request = ExtendedPost::Request;

constexpr uint64_t kWithFlush = 1 << 11;  // IBV_QP_EX_WITH_FLUSH, which older headers lack
constexpr uint64_t kDatagramOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr uint64_t kUcOperations = kDatagramOperations | IBV_QP_EX_WITH_RDMA_WRITE |
                                   IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                                   IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kRcOperations = kUcOperations | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
                                   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                   IBV_QP_EX_WITH_ATOMIC_WRITE | kWithFlush;

uint64_t type_operations(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRcOperations;
    case IBV_QPT_UC:
      return kUcOperations;
    case IBV_QPT_UD:
      return kDatagramOperations;
    case IBV_QPT_RAW_PACKET:
      return IBV_QP_EX_WITH_SEND;
    case IBV_QPT_XRC_SEND:
      return kRcOperations & ~uint64_t{IBV_QP_EX_WITH_ATOMIC_WRITE | kWithFlush};
    default:
      return 0;
  }
}

// Without the operations that the device lacks.
uint64_t device_operations(const DeviceAttributes& attributes) {
  uint64_t operations = kRcOperations;
  if (attributes.atomics == kAtomicsNone)
    operations &= ~uint64_t{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
  if ((attributes.features & kFeatureFlush) == 0) operations &= ~uint64_t{IBV_QP_EX_WITH_ATOMIC_WRITE | kWithFlush};
  if ((attributes.features & kFeatureMemoryWindows) == 0) operations &= ~uint64_t{IBV_QP_EX_WITH_BIND_MW};
  return operations;
}

Qp& qp_of(ibv_qp_ex* ibv) {
  return *ours<Qp>(ibv);
}

ExtendedPost& post_of(ibv_qp_ex* ibv) {
  return *qp_of(ibv).extended;
}

void fail(ExtendedPost& post, int error) {
  if (post.error == 0) post.error = error;
}

// The request that the setters work on; null after an error.
Request* last(ibv_qp_ex* ibv) {
  ExtendedPost& post = post_of(ibv);
  return post.error != 0 || post.count == 0 ? nullptr : post.requests[post.count - 1].get();
}

Request* begin(ibv_qp_ex* ibv, SendOpcode opcode) {
  ExtendedPost& post = post_of(ibv);
  if (post.error != 0) return nullptr;
  assert(post.count <= post.room);
  if (post.count == post.room) {
    fail(post, refuse(ENOMEM,
                      "the list has more than %u requests, the room of the send queue (cap.max_send_wr).\n"
                      "Call ibv_wr_complete() for shorter lists, or make the queue pair with more room.",
                      post.room));
    return nullptr;
  }
  std::unique_ptr<Request>& request = post.requests[post.count];
  if (request == nullptr) request.reset(new (std::nothrow) Request);
  if (request == nullptr) {
    fail(post, refuse_memory("send requests"));
    return nullptr;
  }
  ++post.count;
  assert(post.count <= post.room);
  request->send = {};
  request->send.id = ibv->wr_id;
  request->send.opcode = opcode;
  request->send.flags =
      static_cast<uint8_t>(ibv->wr_flags & (unsigned{roce::kFence} | unsigned{roce::kSignaled} |
                                            unsigned{roce::kSolicited} | unsigned{roce::kIpChecksum}));
  return request.get();
}

Request* begin_remote(ibv_qp_ex* ibv, SendOpcode opcode, uint32_t rkey, uint64_t address) {
  Request* request = begin(ibv, opcode);
  if (request == nullptr) return nullptr;
  request->send.rkey = rkey;
  request->send.remote_address = address;
  return request;
}

void wr_send(ibv_qp_ex* ibv) {
  begin(ibv, SendOpcode::kSend);
}

void wr_send_imm(ibv_qp_ex* ibv, __be32 immediate) {
  if (Request* request = begin(ibv, SendOpcode::kSendImmediate)) request->send.immediate_or_rkey = immediate;
}

void wr_send_inv(ibv_qp_ex* ibv, uint32_t rkey) {
  if (Request* request = begin(ibv, SendOpcode::kSendInvalidate)) request->send.immediate_or_rkey = rkey;
}

void wr_local_inv(ibv_qp_ex* ibv, uint32_t rkey) {
  if (Request* request = begin(ibv, SendOpcode::kLocalInvalidate)) request->send.immediate_or_rkey = rkey;
}

void wr_rdma_write(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address) {
  begin_remote(ibv, SendOpcode::kWrite, rkey, address);
}

void wr_rdma_write_imm(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address, __be32 immediate) {
  if (Request* request = begin_remote(ibv, SendOpcode::kWriteImmediate, rkey, address))
    request->send.immediate_or_rkey = immediate;
}

void wr_rdma_read(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address) {
  begin_remote(ibv, SendOpcode::kRead, rkey, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap) {
  Request* request = begin_remote(ibv, SendOpcode::kCompareSwap, rkey, address);
  if (request == nullptr) return;
  request->send.compare_or_add = compare;
  request->send.swap = swap;
}

void wr_atomic_fetch_add(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address, uint64_t add) {
  if (Request* request = begin_remote(ibv, SendOpcode::kFetchAdd, rkey, address)) request->send.compare_or_add = add;
}

void wr_atomic_write(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address, const void* word) {
  if (Request* request = begin_remote(ibv, SendOpcode::kAtomicWrite, rkey, address))
    memcpy(&request->send.atomic_write, word, sizeof(request->send.atomic_write));
}

void wr_flush(ibv_qp_ex* ibv, uint32_t rkey, uint64_t address, size_t length, uint8_t type, uint8_t level) {
  if (length > UINT32_MAX || type > 0xF || level > 3) {
    fail(post_of(ibv), refuse(EINVAL,
                              "length is %zu, type 0x%x and level %u.\n"
                              "Flush at most 2^32-1 bytes, with IBV_FLUSH_GLOBAL or IBV_FLUSH_PERSISTENT, and "
                              "IBV_FLUSH_RANGE or IBV_FLUSH_MR.",
                              length, type, level));
    return;
  }
  Request* request = begin_remote(ibv, SendOpcode::kFlush, rkey, address);
  if (request == nullptr) return;
  request->send.flush_length = static_cast<uint32_t>(length);
  request->send.flush_type = uint32_t{type} | uint32_t{level} << 4;
}

// The window has its new key from here on, as after ibv_post_send(), unless the list is not posted.
void wr_bind_mw(ibv_qp_ex* ibv, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  if (mw->type != IBV_MW_TYPE_2 || mw->context != ibv->qp_base.context) {
    fail(post_of(ibv), refuse_bind(qp_of(ibv), mw));
    return;
  }
  Request* request = begin(ibv, SendOpcode::kBindWindow);
  if (request == nullptr) return;
  request->send.bind = window_bind(*mw, rkey, *info);
  request->window = mw;
  mw->rkey = request->send.bind.new_rkey;
}

// The list is not posted: its windows get their earlier keys back.
void forget_binds(ExtendedPost& post) {
  for (uint32_t i = post.count; i-- > 0;) {
    const Request& request = *post.requests[i];
    if (request.send.opcode != SendOpcode::kBindWindow) continue;
    assert(request.window != nullptr);
    request.window->rkey = request.send.bind.window_rkey;
  }
}

void wr_set_ud_addr(ibv_qp_ex* ibv, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  if (Request* request = last(ibv)) set_destination(qp_of(ibv), request->send, *ah, remote_qpn, remote_qkey);
}

void wr_set_xrc_srqn(ibv_qp_ex* ibv, uint32_t remote_srqn) {
  if (Request* request = last(ibv)) request->send.remote_srq = remote_srqn;
}

void wr_set_sge_list(ibv_qp_ex* ibv, size_t count, const ibv_sge* list) {
  Request* request = last(ibv);
  if (request == nullptr) return;
  if (count > roce::kMaxSegments) {
    fail(post_of(ibv), refuse_segments(static_cast<int>(std::min<size_t>(count, INT_MAX))));
    return;
  }
  memcpy(static_cast<void*>(request->segments), list, count * sizeof(*list));
  request->send.segments = {request->segments, count};
}

void wr_set_sge(ibv_qp_ex* ibv, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge segment = {address, length, lkey};
  wr_set_sge_list(ibv, 1, &segment);
}

// The program may reuse its memory at once, so the bytes are copied.
void wr_set_inline_data_list(ibv_qp_ex* ibv, size_t count, const ibv_data_buf* list) {
  Request* request = last(ibv);
  if (request == nullptr) return;
  const size_t room = qp_of(ibv).init.cap.max_inline_data;
  if (request->inline_bytes == nullptr && room > 0) request->inline_bytes.reset(new (std::nothrow) std::byte[room]);
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    if (list[i].length == 0) continue;
    if (list[i].length > room - size || request->inline_bytes == nullptr) {
      fail(post_of(ibv),
           list[i].length > room - size
               ? refuse(EINVAL,
                        "the inline data have %zu bytes or more, and the queue pair has "
                        "cap.max_inline_data %zu.\nPost longer data by ibv_wr_set_sge(), or make the queue "
                        "pair with more inline data.",
                        size + list[i].length, room)
               : refuse_memory("inline data"));
      return;
    }
    watch_inline(qp_of(ibv), list[i].addr, list[i].length);
    memcpy(&request->inline_bytes[size], list[i].addr, list[i].length);
    size += list[i].length;
  }
  assert(size <= room);
  request->segments[0] = {reinterpret_cast<uintptr_t>(request->inline_bytes.get()), static_cast<uint32_t>(size), 0};
  request->send.segments = {request->segments, 1};
  request->send.flags |= roce::kInline;
}

void wr_set_inline_data(ibv_qp_ex* ibv, void* address, size_t length) {
  const ibv_data_buf buffer = {address, length};
  wr_set_inline_data_list(ibv, 1, &buffer);
}

// Without locks: for queue pairs of a thread domain.
template <bool kLocks>
void wr_start(ibv_qp_ex* ibv) {
  ExtendedPost& post = post_of(ibv);
  if constexpr (kLocks) post.mutex.lock();
  post.count = 0;
  post.names_ended = false;
  post.error = usable(ibv->qp_base.context) ? 0 : refuse_child();
}

template <bool kSanitized, bool kLocks>
int wr_complete(ibv_qp_ex* ibv) {
  Qp& qp = qp_of(ibv);
  ExtendedPost& post = post_of(ibv);
  assert(!kLocks || post.mutex.is_held_here());
  int error = post.error;
  if (error == 0) {
    const EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kPost);
    // All of them or none.
    for (uint32_t i = 0; i < post.count && error == 0; ++i) {
      const roce::SendRequest& request = post.requests[i]->send;
      const roce::PostError refused = qp.engine->check_send(request, i);
      if (refused != roce::PostError::kNone) error = refuse_send(qp, request, refused);
    }
    if (error == 0) {
      for (uint32_t i = 0; i < post.count; ++i) post_to_engine<kSanitized>(qp, post.requests[i]->send);
    }
  }
  if (error != 0) [[unlikely]]
    forget_binds(post);
  if constexpr (kLocks) post.mutex.unlock();
  return error == 0 ? 0 : refused(error);
}

template <bool kSanitized, bool kLocks>
int traced_wr_complete(ibv_qp_ex* ibv) {
  constexpr const char* kCall = "ibv_wr_complete";
  const ExtendedPost& post = post_of(ibv);
  const uint32_t qpn = ibv->qp_base.qp_num;
  const uint32_t count = post.error == 0 ? post.count : 0;
  uint64_t first = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const roce::SendRequest& request = post.requests[i]->send;
    trace_post(kCall, ibv->qp_base, request, roce::length_of(request.segments));
    if (i == 0) first = request.id;
  }
  const int error = wr_complete<kSanitized, kLocks>(ibv);
  if (error != 0) trace_refusal(kCall, qpn, first, error);
  return error;
}

template <bool kLocks>
void wr_abort(ibv_qp_ex* ibv) {
  forget_binds(post_of(ibv));
  if constexpr (kLocks) post_of(ibv).mutex.unlock();
}

template <bool kSanitized, bool kLocks>
void publish_turns(ibv_qp_ex& ex) {
  ex.wr_start = wr_start<kLocks>;
  ex.wr_complete = program_trace() == nullptr ? watched<wr_complete<kSanitized, kLocks>>()
                                              : watched<traced_wr_complete<kSanitized, kLocks>>();
  ex.wr_abort = wr_abort<kLocks>;
}

template <bool kSanitized>
void publish_turns(ibv_qp_ex& ex, bool locks) {
  if (locks) {
    publish_turns<kSanitized, true>(ex);
  } else {
    publish_turns<kSanitized, false>(ex);
  }
}

}  // namespace

int publish_qp_ex(Qp& qp, uint64_t send_operations) {
  const uint64_t possible = type_operations(qp.init.qp_type) & device_operations(qp.context->attributes());
  const uint64_t lacking = send_operations & ~possible;
  if (lacking != 0 || ((send_operations & kWithFlush) != 0 && !qp.context->has_wr_flush)) {
    return refuse(EOPNOTSUPP,
                  "send_ops_flags has 0x%llx, operations that the queue pair's type, the device's identity "
                  "(--as) or libibverbs lacks.\nAsk for the operations of the type of the queue pair.",
                  static_cast<unsigned long long>(lacking != 0 ? lacking : kWithFlush));
  }
  qp.extended.reset(new (std::nothrow) ExtendedPost);
  if (qp.extended == nullptr) return refuse_memory("send requests");
  qp.extended->room = std::max<uint32_t>(1, qp.init.cap.max_send_wr);
  qp.extended->requests.reset(new (std::nothrow) std::unique_ptr<Request>[qp.extended->room]);
  if (qp.extended->requests == nullptr) return refuse_memory("send requests");

  ibv_qp_ex& ex = qp.abi.qp_ex;
  ex.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  ex.wr_atomic_fetch_add = wr_atomic_fetch_add;
  ex.wr_bind_mw = wr_bind_mw;
  ex.wr_local_inv = wr_local_inv;
  ex.wr_rdma_read = wr_rdma_read;
  ex.wr_rdma_write = wr_rdma_write;
  ex.wr_rdma_write_imm = wr_rdma_write_imm;
  ex.wr_send = wr_send;
  ex.wr_send_imm = wr_send_imm;
  ex.wr_send_inv = wr_send_inv;
  ex.wr_set_ud_addr = wr_set_ud_addr;
  ex.wr_set_inline_data = wr_set_inline_data;
  ex.wr_set_inline_data_list = wr_set_inline_data_list;
  ex.wr_set_sge = wr_set_sge;
  ex.wr_set_sge_list = wr_set_sge_list;
  ex.wr_set_xrc_srqn = wr_set_xrc_srqn;
  const bool locks = !qp.pd->is_single_threaded();
  if (Sanitizer::of_program() != nullptr) {
    publish_turns<true>(ex, locks);
  } else {
    publish_turns<false>(ex, locks);
  }
  ex.wr_atomic_write = wr_atomic_write;
  abi::publish_qp_ex(qp.abi, wr_flush, qp.context->has_wr_flush);
  return 0;
}

}  // namespace dapple::soft

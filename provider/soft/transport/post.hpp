// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// From libibverbs' work requests to the engine's.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include <span>

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxInline = 1024;  // bytes
// The limit of outstanding Reads and atomics of a queue pair, in each direction.
inline constexpr int kMaxReadsAndAtomics = 128;

// The flags that the engine knows, with libibverbs' values.
inline constexpr unsigned kSendFlags =
    roce::kFence | roce::kSignaled | roce::kSolicited | roce::kInline | roce::kIpChecksum;
static_assert(int{roce::kFence} == IBV_SEND_FENCE && int{roce::kSignaled} == IBV_SEND_SIGNALED);
static_assert(int{roce::kSolicited} == IBV_SEND_SOLICITED && int{roce::kInline} == IBV_SEND_INLINE);
static_assert(int{roce::kIpChecksum} == IBV_SEND_IP_CSUM);

static_assert(sizeof(roce::Segment) == sizeof(ibv_sge) && offsetof(ibv_sge, lkey) == offsetof(roce::Segment, lkey));
static_assert(offsetof(ibv_sge, addr) == offsetof(roce::Segment, address));
static_assert(offsetof(ibv_sge, length) == offsetof(roce::Segment, length));

// A copy of a list, until this thread's next call.
const ibv_sge* aligned_copy(const ibv_sge* list, int count);

// A request's gather or scatter list, without a copy if the program has aligned it. It is valid until this thread's
// next call.
inline bool segments_of(const ibv_sge* list, int count, std::span<const roce::Segment>& segments) {
  if (count < 0 || static_cast<uint32_t>(count) > roce::kMaxSegments) return false;
  if (reinterpret_cast<uintptr_t>(list) % alignof(ibv_sge) != 0) [[unlikely]]
    list = aligned_copy(list, count);
  segments = {reinterpret_cast<const roce::Segment*>(list), static_cast<size_t>(count)};
  return true;
}

// Fills in `plain`. False if the request is another one; then `plain` has no meaning.
inline bool is_plain_send(const ibv_send_wr& wr, roce::PlainSend& plain) {
  if (wr.opcode != IBV_WR_SEND || (wr.send_flags & IBV_SEND_FENCE) != 0) return false;
  plain.id = wr.wr_id;
  plain.flags = static_cast<uint8_t>(wr.send_flags & kSendFlags);
  return segments_of(wr.sg_list, wr.num_sge, plain.segments);
}

// The errno for a refused post.
int error_of(roce::PostError error);

// Before the plug-in copies inline bytes: shows them to the program's sanitizer.
void watch_inline(const Qp& qp, const void* memory, size_t size);

// Hands the request to the engine. The caller has the queue pair's lock.
template <bool kSanitized>
roce::PostError post_to_engine(Qp& qp, roce::SendRequest& request) {
  assert_held(qp.mutex);
  if (kSanitized && qp.layers.announced_sends != nullptr && qp.engine->check_send(request, 0) == roce::PostError::kNone)
    request.mark = qp.layers.announced_sends->post(request);
  return qp.engine->post_send(request);
}

// Posts one request and sends. 0 or an errno. Takes the queue pair's lock.
int post_one(Qp& qp, roce::SendRequest& request);

// Of new_rkey only the lowest byte counts. The result has the whole key that the window gets.
roce::WindowBind window_bind(const ibv_mw& mw, uint32_t new_rkey, const ibv_mw_bind_info& info);

// Sets the destination of a datagram from this queue pair.
void set_destination(const Qp& qp, roce::SendRequest& request, const ibv_ah& ah, uint32_t remote_qpn,
                     uint32_t remote_qkey);

template <bool kSanitized>
int post_receives(ReceiveQueue& queue, AnnouncedQueue* announced, const ibv_recv_wr* requests, ibv_recv_wr** bad);

}  // namespace dapple::soft

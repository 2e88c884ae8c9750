// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include <memory>

#include "ibverbs-glue/no_segments.hpp"
#include "ibverbs-glue/verbs.hpp"
#include "rpma/common/slots.hpp"
#include "rpma/cq.hpp"
#include "rpma/memory/mr.hpp"

// Threads: immutable, except posts, which the device orders.
struct rpma_srq {
  std::unique_ptr<dapple::rpma::RecvSlots> slots;  // null on a coherent device
  dapple::verbs::Srq srq;
  std::unique_ptr<rpma_cq> rcq;  // null if it has none; destroyed first
};

namespace dapple::rpma {

// A separate function, so that the usual path saves no registers for it.
template <class Queue, class Post>
[[gnu::noinline]] int post_by_slot(Queue* queue, Post post, RecvSlots& slots, ibv_recv_wr& request,
                                   const ibv_mr* region) noexcept {
  return slots.post(request.wr_id, {request.sg_list, region, Use::kWrites}, [&](uint64_t wr_id) {
    ibv_recv_wr* bad = nullptr;
    request.wr_id = wr_id;
    return post(queue, &request, &bad);
  });
}

// Posts a receive for a part of the region, or without memory if the region is null. post: ibv_post_recv or
// ibv_post_srq_recv. Returns an errno value.
template <class Queue, class Post>
[[gnu::always_inline]] inline int post_recv(Queue* queue, Post post, RecvSlots* slots, const rpma_mr_local* region,
                                            size_t offset, size_t len, const void* op_context) noexcept {
  ibv_sge segment;
  if (region) segment = region->segment(offset, len);
  ibv_recv_wr request;
  request.wr_id = reinterpret_cast<uintptr_t>(op_context);
  request.next = nullptr;
  request.sg_list = region ? &segment : nullptr;
  request.num_sge = region ? 1 : 0;
  if (!region && verbs::is_iwarp(*queue->context)) [[unlikely]]
    verbs::name_a_segment(request);
  if (slots) [[unlikely]]
    return post_by_slot(queue, post, *slots, request, region ? region->mr.get() : nullptr);
  ibv_recv_wr* bad;
  return post(queue, &request, &bad);
}

}  // namespace dapple::rpma

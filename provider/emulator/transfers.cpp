// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/transfers.hpp"

#include <cassert>

#include "provider/common/request_circle.hpp"
#include "provider/common/segment_at.hpp"
#include "provider/emulator/shadow/finding.hpp"

namespace dapple::provider {
namespace {

// True if the device reads the request's segments.
bool sends(const ibv_send_wr& request) {
  if ((request.send_flags & IBV_SEND_INLINE) != 0) return false;
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Transfers::check(Sent& sent, uint32_t qp_num, TransferFinding::When when) {
  std::erase_if(sent.ranges, [&](const iovec& range) {
    const auto address = reinterpret_cast<uintptr_t>(range.iov_base);
    const Tally changed = shadow_.dirty_bytes(address, range.iov_len);
    assert(changed.count <= range.iov_len);
    if (changed.count == 0) return false;
    tell_({when, sent.opcode, sent.wr_id, qp_num, address, range.iov_len, changed, sent.posted});
    return true;
  });
}

int Transfers::post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means) {
  if (shadow_.in_child() || provider::find_circle<ibv_send_wr>(requests)) return means.post_send(qp, requests, bad);
  const Stack posted = stack_here();
  // The lock is held during the post, so that requests of several threads are recorded in the order in which the device
  // gets them, and before any thread polls their completions.
  const std::lock_guard guard(mutex_);
  const auto [entry, is_new] = queues_.try_emplace({qp->context, qp->qp_num});
  Queue& queue = entry->second;
  if (is_new) queue.signals_all = means.signals_all(qp);
  const size_t before = queue.sent.size();
  for (const ibv_send_wr* request = requests; request != nullptr; request = request->next) {
    Sent sent = {request->wr_id,
                 request->opcode,
                 queue.signals_all || (request->send_flags & IBV_SEND_SIGNALED) != 0,
                 {},
                 posted};
    for (int i = 0; sends(*request) && i < request->num_sge; ++i) {
      iovec range = {};
      if (means.find(qp->context, segment_at(request->sg_list, i), &range) && range.iov_len > 0)
        sent.ranges.push_back(range);
    }
    check(sent, qp->qp_num, TransferFinding::When::kAtPost);
    queue.sent.push_back(std::move(sent));
  }
  ibv_send_wr* refused = nullptr;
  const int error = means.post_send(qp, requests, &refused);
  if (error != 0) {
    size_t taken = 0;
    for (const ibv_send_wr* request = requests; request != nullptr && request != refused; request = request->next) {
      ++taken;
    }
    assert(before + taken <= queue.sent.size());
    queue.sent.resize(before + taken);
    *bad = refused;
  }
  if (queue.sent.size() > kMaxSent) queue.sent.clear();
  assert(!queue.signals_all || queue.sent.empty() || queue.sent.back().is_signalled);
  return error;
}

// The completion queue is locked during the poll, so that the completions that several threads get are seen in the
// order in which the device gave them. Posts and other queues do not wait for it.
int Transfers::poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*)) {
  if (shadow_.in_child()) return poll_cq(cq, count, completions);
  const std::lock_guard guard(polls_[reinterpret_cast<uintptr_t>(cq) / 64 % kNumPolls]);
  const int num_polled = poll_cq(cq, count, completions);
  if (num_polled > 0) polled(cq->context, completions, num_polled);
  return num_polled;
}

void Transfers::polled(const ibv_context* context, const ibv_wc* completions, int count) {
  const std::lock_guard guard(mutex_);
  for (const ibv_wc* done = completions; done != completions + count; ++done) {
    const auto entry = queues_.find({context, done->qp_num});
    if (entry == queues_.end()) continue;
    std::deque<Sent>& sent = entry->second.sent;
    // A failed completion has no valid opcode, so it does not tell whether it belongs to a receive. The requests behind
    // it fail as well, so all are dropped.
    if (done->status != IBV_WC_SUCCESS) sent.clear();
    if (done->status != IBV_WC_SUCCESS || (done->opcode & IBV_WC_RECV) != 0) continue;
    while (!sent.empty() && !sent.front().is_signalled) sent.pop_front();
    if (sent.empty()) continue;
    // The completion belongs to another request: the program has posted requests or polled completions by calls that
    // are not seen here.
    if (sent.front().wr_id != done->wr_id) {
      sent.clear();
      continue;
    }
    assert(sent.front().is_signalled);
    check(sent.front(), done->qp_num, TransferFinding::When::kBeforeCompletion);
    sent.pop_front();
  }
}

void Transfers::emptied(const ibv_qp* qp) {
  if (shadow_.in_child()) return;
  const std::lock_guard guard(mutex_);
  queues_.erase({qp->context, qp->qp_num});
}

}  // namespace dapple::provider

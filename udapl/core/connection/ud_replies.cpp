// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/ud_replies.hpp"

#include <cassert>
#include <new>

#include "udapl/core/clock.hpp"

namespace dapple::udapl {
namespace {

constexpr int64_t kRememberedNs = 120'000'000'000;  // the peer's kernel repeats a request for about a minute

}  // namespace

void UdReplies::remember(const UdReply& reply) noexcept {
  assert(replies_.size() <= kMax && reply.qp_num != 0);
  if (replies_.size() == kMax) {
    replies_[oldest_++ % kMax] = reply;
    return;
  }
  try {
    replies_.push_back(reply);
  } catch (const std::bad_alloc&) {
  }
}

const UdReply* UdReplies::find(const sockaddr* peer, const UdReceived& request) const {
  const int64_t now = now_ns();
  for (const UdReply& reply : replies_) {
    if (reply.serial == request.serial && reply.peer_qp_num == request.qp_num && reply.qp_num != 0 &&
        now - reply.time_ns < kRememberedNs && verbs::same_address(reply.peer.get(), peer)) {
      return &reply;
    }
  }
  return nullptr;
}

void UdReplies::forget(uint32_t qp_num) {
  for (UdReply& reply : replies_) {
    if (reply.qp_num == qp_num) reply.qp_num = 0;
  }
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path of an endpoint where nothing is unusual: each condition is looked at once, and nothing is built that
// the device does not read.
#pragma once

#include "udapl/core/ep.hpp"
#include "udapl/core/ia.hpp"

namespace dapple::dat {

// Bytes of all segments together.
inline uint64_t total_length(std::span<const ibv_sge> segments) {
  uint64_t total = 0;
  for (const ibv_sge& segment : segments) total += segment.length;  // at most 2^31 segments of under 2^32 bytes
  return total;
}

template <DtoOperation kOperation>
[[gnu::always_inline]] inline int Ep::post_plain_request(int count, const ibv_sge* segments, uint64_t user_cookie,
                                                         const RemoteBuffer& remote, uint32_t flags) {
  constexpr bool kIsSend = kOperation == DtoOperation::kSend;
  constexpr bool kIsRead = kOperation == DtoOperation::kRdmaRead;
  static_assert(kIsSend || kIsRead || kOperation == DtoOperation::kRdmaWrite);
  const uint32_t limit = kIsSend ? attr_.max_request_iov : kIsRead ? attr_.max_rdma_read_iov : attr_.max_rdma_write_iov;
  // A negative count is a large one here.
  if ((flags | uint32_t{unusual_}) || !segments || static_cast<uint32_t>(count) > limit) [[unlikely]]
    return kNotPlain;
  if (state() != EpState::kConnected || !evds_.request || requests_.full()) [[unlikely]]
    return kNotPlain;
  const uint64_t length = total_length({segments, static_cast<uint32_t>(count)});
  if (length > ia().port_attr().max_msg_sz || (!kIsSend && length > remote.length)) [[unlikely]]
    return kNotPlain;
  unsigned int send_flags = IBV_SEND_SIGNALED;
  if (!kIsRead && length <= max_inline_) {
    if (ia().lmrs().any_zero_based()) [[unlikely]]
      return kNotPlain;
    send_flags |= IBV_SEND_INLINE;
  }

  Cookie& cookie = requests_.next();
  cookie.user_cookie = user_cookie;
  cookie.length = length;
  cookie.ep = this;
  cookie.srq = nullptr;
  cookie.operation = kOperation;
  cookie.suppressed = false;
  cookie.unsignalled = false;
  cookie.plain = true;
  ibv_send_wr& wr = plain_request_;
  wr.wr_id = reinterpret_cast<uint64_t>(&cookie);
  wr.sg_list = const_cast<ibv_sge*>(segments);
  wr.num_sge = count;
  wr.opcode = kIsSend ? IBV_WR_SEND : kIsRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  wr.send_flags = send_flags;
  if constexpr (!kIsSend) {
    wr.wr.rdma.remote_addr = remote.address;
    wr.wr.rdma.rkey = remote.context;
  }
  // Before the device knows of it, so that nothing but the result is looked at after the call.
  requests_.push();
  constexpr EpCounter kCounter = kIsSend   ? EpCounter::kPostSend
                                 : kIsRead ? EpCounter::kPostRead
                                           : EpCounter::kPostWrite;
  counters_.add_with_bytes(kCounter, length);
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &wr, &bad)) [[unlikely]] {
    requests_.pop();
    counters_.take_back(kCounter, requests_.next().length);
    return error;
  }
  unsignalled_run_ = 0;
  return 0;
}

[[gnu::always_inline]] inline int Ep::post_plain_recv(int count, const ibv_sge* segments, uint64_t user_cookie,
                                                      uint32_t flags) {
  if ((flags | uint32_t{unusual_recv_}) || !segments || static_cast<uint32_t>(count) > attr_.max_recv_iov) [[unlikely]]
    return kNotPlain;
  if (!qp_ || !evds_.recv || receives_.full()) [[unlikely]]
    return kNotPlain;
  const uint64_t length = total_length({segments, static_cast<uint32_t>(count)});

  Cookie& cookie = receives_.next();
  cookie.user_cookie = user_cookie;
  cookie.length = length;
  cookie.ep = this;
  cookie.srq = nullptr;
  cookie.operation = DtoOperation::kReceive;
  cookie.suppressed = false;
  cookie.unsignalled = false;
  cookie.plain = true;
  ibv_recv_wr& wr = plain_recv_;
  wr.wr_id = reinterpret_cast<uint64_t>(&cookie);
  wr.sg_list = const_cast<ibv_sge*>(segments);
  wr.num_sge = count;
  receives_.push();
  counters_.add_with_bytes(EpCounter::kPostRecv, length);
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp_.get(), &wr, &bad)) [[unlikely]] {
    receives_.pop();
    counters_.take_back(EpCounter::kPostRecv, receives_.next().length);
    return error;
  }
  if (state() == EpState::kDisconnected) [[unlikely]]
    flush_receives();
  return 0;
}

}  // namespace dapple::dat

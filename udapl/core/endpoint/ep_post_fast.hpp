// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path of an endpoint for usual requests. Each condition is checked once, and nothing is built that the device
// does not read. Through ep_post.cpp an RDMA Write would take 260 instructions more, and a receive 145: the lock, the
// ban on cancellation, and a work request on the stack.
#pragma once

#include <optional>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/queue/device_order.hpp"

namespace dapple::udapl {

// The sum of the bytes of all segments.
inline uint64_t total_length(std::span<const ibv_sge> segments) {
  uint64_t total = 0;
  for (const ibv_sge& segment : segments) total += segment.length;  // at most 2^31 segments of under 2^32 bytes
  return total;
}

// The same for a list that is not empty. Usually it has one segment.
inline uint64_t total_length(const ibv_sge* segments, uint32_t count) {
  if (count == 1) [[likely]]
    return segments->length;
  return total_length({segments, count});
}

// No sum wraps: the addresses before 64 KiB are never mapped, and no device takes so much inline data.
[[gnu::always_inline]] inline bool Ep::is_in_source(const ibv_sge& segment, uint64_t length) const {
  uint64_t offset = 0;
  return segment.lkey == source_.context && ia().lmrs().departures() == source_.departures &&
         !__builtin_sub_overflow(segment.addr, source_.begin, &offset) && offset + length <= source_.length;
}

// length: of all segments together.
[[gnu::always_inline]] inline bool Ep::are_in_source(const ibv_sge* segments, int count, uint64_t length) const {
  if (count == 1) [[likely]]
    return is_in_source(*segments, length);
  for (int i = 0; i < count; ++i) {
    if (!is_in_source(segments[i], segments[i].length)) return false;
  }
  return true;
}

template <DtoOperation kOperation>
[[gnu::always_inline]] inline std::optional<int> Ep::post_request_fast(int count, const ibv_sge* segments,
                                                                       uint64_t cookie, const RemoteBuffer& remote,
                                                                       uint32_t flags) {
  constexpr bool kIsSend = kOperation == DtoOperation::kSend;
  constexpr bool kIsRead = kOperation == DtoOperation::kRdmaRead;
  static_assert(kIsSend || kIsRead || kOperation == DtoOperation::kRdmaWrite);
  const uint32_t limit = kIsSend ? attr_.max_request_iov : kIsRead ? attr_.max_rdma_read_iov : attr_.max_rdma_write_iov;
  // The cast makes a negative count a large one.
  if ((flags | uint32_t{request_needs_slow_path_}) || !segments || static_cast<uint32_t>(count) > limit) [[unlikely]]
    return std::nullopt;
  if (state() != EpState::kConnected) [[unlikely]]
    return std::nullopt;
  const uint64_t length = total_length(segments, static_cast<uint32_t>(count));
  if (!kIsSend && length > remote.length) [[unlikely]]
    return std::nullopt;
  unsigned int send_flags = IBV_SEND_SIGNALED;
  if (!kIsRead && length <= max_inline_) {
    if (!are_in_source(segments, count, length)) [[unlikely]]
      return std::nullopt;
    send_flags |= IBV_SEND_INLINE;
  } else if (length > ia().port_attr().max_msg_sz) [[unlikely]] {
    return std::nullopt;
  }
  // The request is counted before the device knows of it. After the call only the result is read, and a thread that is
  // cancelled inside the call has posted.
  WorkRequest* const request = requests_.post_next();
  if (!request) [[unlikely]]
    return std::nullopt;
  request->set(*this, kOperation, cookie, length, 0, true);
  constexpr EpCounter kCounter = kIsSend   ? EpCounter::kPostSend
                                 : kIsRead ? EpCounter::kPostRead
                                           : EpCounter::kPostWrite;
  counters_.add_with_bytes(kCounter, length);

  ibv_send_wr& wr = fast_request_;
  wr.wr_id = wr_id_of(*request);
  wr.sg_list = const_cast<ibv_sge*>(segments);
  wr.num_sge = count;
  wr.opcode = kIsSend ? IBV_WR_SEND : kIsRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  wr.send_flags = send_flags;
  if constexpr (!kIsSend) {
    wr.wr.rdma.remote_addr = remote.address;
    wr.wr.rdma.rkey = remote.context;
  }
  given_to_device(request);
  if (const int error = ibv_post_send(qp_.get(), &wr, &refused_request_)) [[unlikely]] {
    requests_.withdraw();
    counters_.take_back(kCounter, requests_.next().length);
    return error;
  }
  unsignalled_run_ = 0;
  return 0;
}

[[gnu::always_inline]] inline std::optional<int> Ep::post_recv_fast(int count, const ibv_sge* segments, uint64_t cookie,
                                                                    uint32_t flags) {
  if ((flags | uint32_t{recv_needs_slow_path_}) || !segments || static_cast<uint32_t>(count) > attr_.max_recv_iov)
      [[unlikely]]
    return std::nullopt;
  WorkRequest* const request = receives_.post_next();
  if (!request) [[unlikely]]
    return std::nullopt;
  const uint64_t length = total_length(segments, static_cast<uint32_t>(count));
  request->set(*this, DtoOperation::kReceive, cookie, length, 0, true);
  counters_.add_with_bytes(EpCounter::kPostRecv, length);

  ibv_recv_wr& wr = fast_recv_;
  wr.wr_id = wr_id_of(*request);
  wr.sg_list = const_cast<ibv_sge*>(segments);
  wr.num_sge = count;
  given_to_device(request);
  if (const int error = ibv_post_recv(qp_.get(), &wr, &refused_recv_)) [[unlikely]] {
    receives_.withdraw();
    counters_.take_back(EpCounter::kPostRecv, receives_.next().length);
    return error;
  }
  if (has_ended_meanwhile()) [[unlikely]]
    flush_receives();
  return 0;
}

}  // namespace dapple::udapl

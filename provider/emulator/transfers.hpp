// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The watch over the data that a program posts for sending: it finds bytes that no sync has cleaned before the post,
// and bytes that change before the completion.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "provider/common/policy.hpp"
#include "provider/emulator/shadow/shadow.hpp"

namespace dapple::provider {

struct TransferFinding {
  enum class When { kAtPost, kBeforeCompletion } when;
  ibv_wr_opcode opcode;
  uint64_t wr_id;
  uint32_t qp_num;
  uintptr_t address;  // of the segment
  size_t length;
  Tally changed;  // its bytes that the CPU has changed
  Stack posted;
};

// Requests of ibv_post_send() whose data lies in memory with a shadow. The watch does not see inline data, receives,
// posts by ibv_wr_start() and polls by ibv_start_poll(). The end of a request without a completion is not known, so
// only its post is checked.
class Transfers {
 public:
  // Called with a lock held.
  using Tell = void (*)(const TransferFinding& finding);

  Transfers(Shadow& shadow, Tell tell) : shadow_(shadow), tell_(tell) {}

  int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means);
  int poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*));
  void emptied(const ibv_qp* qp);

 private:
  struct Sent {
    uint64_t wr_id;
    ibv_wr_opcode opcode;
    bool is_signalled;
    std::vector<iovec> ranges;
    Stack posted;
  };
  // sent is in the order of posting.
  struct Queue {
    bool signals_all = false;
    std::deque<Sent> sent;
  };
  using Key = std::pair<const ibv_context*, uint32_t>;

  static constexpr size_t kNumPolls = 64;
  // The limit of recorded requests for one queue pair, for programs that never poll their completions.
  static constexpr size_t kMaxSent = 1 << 16;

  // Reports the request's ranges with changed bytes, and removes them.
  void check(Sent& sent, uint32_t qp_num, TransferFinding::When when);

  void polled(const ibv_context* context, const ibv_wc* completions, int count);

  // Of completion queues, by their addresses. Each is taken before mutex_.
  std::mutex polls_[kNumPolls];
  std::mutex mutex_;
  Shadow& shadow_;
  Tell tell_;
  std::map<Key, Queue> queues_;
};

}  // namespace dapple::provider

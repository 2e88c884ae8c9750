// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface of ibv_qp_ex: requests are collected between wr_start() and wr_complete(), which posts them.
#pragma once

#include <stdint.h>

#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/open_batch.hpp"

namespace dapple::soft {

// The functions of an extended queue pair below a layer. They depend on the queue pair's thread domain.
struct PostsBelow {
  decltype(ibv_qp_ex::wr_start) wr_start = nullptr;
  decltype(ibv_qp_ex::wr_complete) wr_complete = nullptr;
  decltype(ibv_qp_ex::wr_abort) wr_abort = nullptr;  // only that below the layer of --hang
};

// The requests that are collected for one queue pair.
struct ExtendedPost {
  struct Request {
    roce::SendRequest send;
    roce::Segment segments[roce::kMaxSegments];
    std::unique_ptr<std::byte[]> inline_bytes;
    ibv_mw* window = nullptr;  // of a bind
  };

  // Held from wr_start() to wr_complete() or wr_abort(), because threads may share a queue pair that has no thread
  // domain.
  Mutex mutex{LockRank::kPosting};
  std::unique_ptr<std::unique_ptr<Request>[]> requests;  // room for as many as the send queue has; kept for reuse
  uint32_t room = 0;
  uint32_t count = 0;
  int error = 0;  // the first
  PostsBelow below_explain, below_hang;
  OpenBatch posting;
  decltype(ibv_qp_ex::wr_complete) complete_below_tombs = nullptr;
  bool names_ended = false;  // a request has got an object that has ended, as dapple-run --check has reported
};

// 0; EOPNOTSUPP: an operation that the queue pair's type lacks; ENOMEM. Fills in the functions of ibv_qp_ex.
int publish_qp_ex(Qp& qp, uint64_t send_operations);

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The last requests before a graceful disconnect.
#include <cassert>
#include <mutex>
#include <utility>

#include "udapl/core/clock.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/queue/device_order.hpp"

namespace dapple::udapl {
namespace {

constexpr int64_t kLimitNs = 2'000'000'000;  // how long a disconnect waits while no request completes,
constexpr int64_t kLimitNsPerByte = 60;      // and how much longer for requests of many bytes: 16 MB take a second

}  // namespace

void Ep::begin_drain() {
  assert(state() == EpState::kDisconnectPending);
  {
    std::lock_guard guard(post_mutex_);
    drain_target_ = requests_.posted();
  }
  // The order matters: completed() runs under the EVD's lock, so a thread that finishes a request after drain() has
  // looked notifies the connection.
  draining_.store(true, std::memory_order_release);
  drain_progress_ = requests_.completed();
  drain_progress_ns_ = now_ns();
}

bool Ep::drain() {
  assert(draining());
  if (evds_.request) {
    signal_last_request();
    evds_.request->reap();
  }
  const int64_t now = now_ns();
  const uint32_t completed = requests_.completed();
  if (std::exchange(drain_progress_, completed) != completed) drain_progress_ns_ = now;
  const bool all = static_cast<int32_t>(completed - drain_target_) >= 0;
  if (!all) {
    const auto limit_ns = kLimitNs + static_cast<int64_t>(bytes_until_progress(completed)) * kLimitNsPerByte;
    if (now - drain_progress_ns_ < limit_ns) return false;
  }
  draining_.store(false, std::memory_order_release);
  return true;
}

// The bytes of the requests from this one up to the first one with its own completion.
uint64_t Ep::bytes_until_progress(uint32_t sequence) {
  uint64_t bytes = 0;
  for (; sequence != drain_target_; ++sequence) {
    const WorkRequest& request = requests_.at(sequence);
    if (request.operation != DtoOperation::kBind) bytes += request.length;
    if (!request.suppressed || request.spare) break;
  }
  return bytes;
}

// A suppressed request is known to have completed only when a later one has. So an RDMA Write of 0 bytes follows the
// last one. The device checks no key for it, and no consumer sees it. DEVIATION graceful disconnect on iWARP, except
// siw: a device might check the key, so a time-out is used instead.
void Ep::signal_last_request() {
  std::lock_guard guard(post_mutex_);
  if (unsignalled_run_ == 0 || !ia().rules().ignores_key_of_empty_write || requests_.full() ||
      !evds_.request->take_spare())
    return;
  WorkRequest& request = requests_.next();
  // The write makes no event, flushed or not.
  request.set(*this, DtoOperation::kInvalidate, 0, 0, kSuppress | kUnsignalled, false);
  request.spare = true;
  request.num_segments = 0;
  ibv_send_wr wr{};
  wr.wr_id = wr_id_of(request);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  given_to_device(&request);
  if (submit(wr)) return evds_.request->give_back_spare();
  unsignalled_run_ = 0;
  requests_.post();
  drain_target_ = requests_.posted();
}

}  // namespace dapple::udapl

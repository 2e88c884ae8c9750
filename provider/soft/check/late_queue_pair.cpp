// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/late_queue_pair.hpp"

#include <algorithm>

namespace dapple::soft::check {
namespace {

constexpr double kShare = 0.25;
constexpr roce::Time kShortest = 50'000;  // nanoseconds
constexpr roce::Time kLongest = 1'000'000;

}  // namespace

roce::PostError LateQueuePair::post_send(const roce::SendRequest& request) {
  const roce::PostError error = followed([&] { return engine_->post_send(request); });
  const bool waits = delay_ != 0 || until_ != roce::kNever;
  if (error == roce::PostError::kNone && !waits && random_.happens(kShare))
    delay_ = kShortest + random_.next() % (kLongest - kShortest);
  return error;
}

bool LateQueuePair::transmit(roce::Now now, roce::PacketSink& sink) {
  if (delay_ != 0) {
    until_ = now.exact() + delay_;
    delay_ = 0;
  }
  if (until_ != roce::kNever) {
    if (now.exact() < until_) return false;
    until_ = roce::kNever;
  }
  return followed([&] { return engine_->transmit(now, sink); });
}

roce::Time LateQueuePair::deadline() const {
  return std::min(engine_->deadline(), until_);
}

void LateQueuePair::expire(roce::Now now) {
  if (now.exact() >= engine_->deadline()) followed([&] { engine_->expire(now); });
}

}  // namespace dapple::soft::check

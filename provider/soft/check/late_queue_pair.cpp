// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/late_queue_pair.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "roce/core/syndrome.hpp"

namespace dapple::soft::check {
namespace {

constexpr double kShare = 0.25;
// A program posts its requests from few places, so most of its mistakes are among the first ones. Further requests are
// late more rarely: bandwidth would suffer.
constexpr uint64_t kFirst = 256;
constexpr double kLaterShare = 1.0 / 128;
constexpr roce::Time kShortest = 50'000;  // nanoseconds
constexpr roce::Time kLongest = 1'000'000;
// Acknowledgements wait, too, so a wait is much shorter than the timeout, which is mostly that of the peer as well.
constexpr roce::Time kPartOfTimeout = 8;

constexpr timespec kLook = {0, 200'000};
constexpr int kMaxLooks = 50;

// The queue pairs that wait.
constinit std::atomic<uint32_t> waiting{0};
// Those of them that wait forever, because they are the parent's.
constinit std::atomic<uint32_t> forgotten{0};

}  // namespace

void LateQueuePair::assert_consistent() const {
  // A wait either is to begin or has begun.
  assert(delay_ == 0 || until_ == roce::kNever);
  assert(delay_ == 0 || (kShortest <= delay_ && delay_ < kLongest));
  assert(!waits() || waiting.load() > 0);
  assert(state_ == engine().state());
}

LateQueuePair::~LateQueuePair() {
  assert_consistent();
  if (waits()) waiting.fetch_sub(1);
}

void LateQueuePair::let_all_begin() {
  for (int i = 0; i < kMaxLooks && waiting.load() > forgotten.load(); i++) nanosleep(&kLook, nullptr);
}

void LateQueuePair::forget_waits() {
  forgotten.store(waiting.load());
}

roce::PostError LateQueuePair::post_send(const roce::SendRequest& request) {
  const roce::PostError error = roce::QueuePairLayer::post_send(request);
  if (error != roce::PostError::kNone || waits()) return error;
  if (!random_.happens(posts_++ < kFirst ? kShare : kLaterShare)) return error;
  const roce::Time longest = std::min(kLongest, roce::ack_time(attributes().timeout) / kPartOfTimeout);
  if (longest <= kShortest) return error;
  delay_ = kShortest + random_.next() % (longest - kShortest);
  waiting.fetch_add(1);
  assert_consistent();
  return error;
}

bool LateQueuePair::transmit(roce::Now now, roce::PacketSink& sink) {
  assert_consistent();
  if (delay_ != 0) {
    until_ = now.exact() + delay_;
    delay_ = 0;
  }
  if (until_ != roce::kNever) {
    if (now.exact() < until_) return false;
    until_ = roce::kNever;
    waiting.fetch_sub(1);
  }
  return roce::QueuePairLayer::transmit(now, sink);
}

roce::Time LateQueuePair::deadline() const {
  return std::min(roce::QueuePairLayer::deadline(), until_);
}

}  // namespace dapple::soft::check

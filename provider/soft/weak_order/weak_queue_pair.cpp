// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/weak_queue_pair.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "provider/soft/memory/order_watch.hpp"
#include "provider/soft/weak_order/pausing_sink.hpp"
#include "provider/soft/weak_order/waits.hpp"
#include "roce/core/syndrome.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {
namespace {

// Of posts, and of Reads and the like that arrive.
constexpr double kLateShare = 0.5;
constexpr roce::Time kShortest = 20'000;  // nanoseconds
constexpr roce::Time kLongest = 200'000;
// Acknowledgements wait, too, so a wait is much shorter than the timeout, which is mostly that of the peer as well.
constexpr roce::Time kPartOfTimeout = 8;

// Bytes that a Write has brought may be kept while its further packets arrive. Everything else comes after them,
// except for answers to this end's own requests. A Write with immediate data ends with a completion.
bool comes_after_kept_bytes(const roce::OpcodeInfo& info) {
  if (info.has(roce::kResponse)) return false;
  return !info.has(roce::kIsWrite) || info.has(roce::kStarts) || info.has(roce::kHasImmediate);
}

// One of the packets of such a Write.
bool may_keep_bytes(const roce::OpcodeInfo& info) {
  return info.has(roce::kIsWrite) && !info.has(roce::kHasImmediate);
}

}  // namespace

WeakQueuePair::WeakQueuePair(std::unique_ptr<roce::QueuePair> engine, std::unique_ptr<WeakMemory> memory, uint64_t seed)
    : roce::QueuePairLayer(std::move(engine)), memory_(std::move(memory)), random_(seed) {
  [[maybe_unused]] static const int registered = atexit(await_all_waits);
}

WeakQueuePair::~WeakQueuePair() {
  assert_consistent();
  if (waits()) late_packets.end();
}

void WeakQueuePair::assert_consistent() const {
  // A wait either is to begin or has begun.
  assert(wait_ == 0 || until_ == roce::kNever);
  assert(wait_ <= kLongest && (!waits() || late_packets.any()));
  // Kept bytes have a time at which they are placed. A local invalidation places them earlier.
  assert(!memory_->has_held() || place_at_ != roce::kNever);
  assert(state_ == engine().state());
}

roce::Time WeakQueuePair::draw_time() {
  return kShortest + random_.below(kLongest - kShortest);
}

void WeakQueuePair::draw_wait(double probability) {
  if (waits() || !random_.happens(probability)) return;
  const roce::Time time = std::min(draw_time(), roce::ack_time(attributes().timeout) / kPartOfTimeout);
  if (time < kShortest) return;
  wait_ = time;
  tell_order_watch();
  late_packets.begin();
}

void WeakQueuePair::place_held() {
  memory_->place_held();
  place_at_ = roce::kNever;
}

bool WeakQueuePair::modify(const roce::QpAttributes& attributes, uint32_t mask) {
  place_held();
  memory_->forget_early();
  return roce::QueuePairLayer::modify(attributes, mask);
}

roce::PostError WeakQueuePair::post_send(const roce::SendRequest& request) {
  const roce::PostError error = roce::QueuePairLayer::post_send(request);
  if (error == roce::PostError::kNone) draw_wait(kLateShare);
  assert_consistent();
  return error;
}

void WeakQueuePair::receive(roce::Now now, const roce::Packet& packet) {
  const roce::OpcodeInfo& info = *packet.info;
  // A program that has read a count of the peer's Writes sees their bytes.
  const bool is_counted = is_observed_ && info.has(roce::kIsWrite) && info.has(roce::kEnds);
  const bool may_keep = may_keep_bytes(info) && !is_counted;
  if (comes_after_kept_bytes(info) || is_counted) {
    if (may_keep && memory_->has_held() && random_.happens(kLateShare)) {
      memory_->keep_in_order();
    } else {
      place_held();
    }
  }
  memory_->holds(may_keep);
  roce::QueuePairLayer::receive(now, packet);
  memory_->holds(false);
  if (state() == roce::QpState::kError) {
    place_held();
  } else if (memory_->has_held() && place_at_ == roce::kNever) {
    place_at_ = now.exact() + draw_time();
  }
  // An atomic is executed already; its answer may leave late, too.
  if (info.has(roce::kIsAnswered) && !info.has(roce::kResponse)) draw_wait(kLateShare);
  assert_consistent();
}

bool WeakQueuePair::transmit(roce::Now now, roce::PacketSink& sink) {
  assert_consistent();
  if (wait_ != 0) until_ = now.exact() + std::exchange(wait_, 0);
  if (until_ != roce::kNever) {
    if (now.exact() < until_) return false;
    until_ = roce::kNever;
    late_packets.end();
  }
  PausingSink pausing(sink, random_);
  const bool is_full = roce::QueuePairLayer::transmit(now, pausing);
  if (!is_full || !pausing.pauses()) return is_full;
  draw_wait(1);
  if (wait_ == 0) return true;
  until_ = now.exact() + std::exchange(wait_, 0);
  return false;
}

roce::Time WeakQueuePair::deadline() const {
  return std::min({roce::QueuePairLayer::deadline(), until_, place_at_});
}

void WeakQueuePair::expire(roce::Now now) {
  if (now.exact() >= place_at_) place_held();
  roce::QueuePairLayer::expire(now);
  assert_consistent();
}

}  // namespace dapple::soft

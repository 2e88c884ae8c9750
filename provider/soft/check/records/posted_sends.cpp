// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/posted_sends.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft::check {
namespace {

bool same(std::span<const roce::Segment> one, std::span<const roce::Segment> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const roce::Segment& a, const roce::Segment& b) {
                      return a.address == b.address && a.length == b.length && a.lkey == b.lkey;
                    });
}

}  // namespace

bool PostedSends::is_done(const PostedSend& send) {
  return send.has_result || send.sent == roce::length_of(send.segments);
}

void PostedSends::assert_consistent() const {
  assert_held(mutex_);
  assert(sends_.empty() || (sends_.front().number <= sends_.back().number && sends_.back().number < next_number_));
  assert(done_ <= sends_.size() && (done_ == 0 || is_done(sends_[done_ - 1])));
  assert(in_error_.size() <= most_);
}

void PostedSends::forget(const PostedSend& send) {
  assert(is_done(send) || any_waits());
  if (!is_done(send)) all_waiting_.fetch_sub(1);
}

uint64_t PostedSends::add(PostedSend send) {
  const std::lock_guard lock(mutex_);
  send.number = next_number_++;
  if (!is_done(send)) all_waiting_.fetch_add(1);
  sends_.push_back(std::move(send));
  in_post_++;
  assert_consistent();
  return next_number_ - 1;
}

void PostedSends::was_taken() {
  const std::lock_guard lock(mutex_);
  assert(in_post_ > 0);
  in_post_--;
  // A request that the device may yet refuse takes nobody's place.
  while (sends_.size() > most_ + in_post_) {
    forget(sends_.front());
    sends_.pop_front();
    if (done_ > 0) done_--;
  }
  assert_consistent();
}

void PostedSends::keep(uint64_t number, SharedCopy copy) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(sends_.rbegin(), sends_.rend(), [&](const PostedSend& send) { return send.number == number; });
  // An older request with the same segments, which is sent again, counts as this one.
  if (found == sends_.rend() || found->overwritten || found->sent != 0) return;
  assert(found->copy == nullptr);
  found->copy = std::move(copy);
  assert_consistent();
}

void PostedSends::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  assert(number < next_number_ && in_post_ > 0);
  in_post_--;
  const auto found =
      std::find_if(sends_.begin(), sends_.end(), [&](const PostedSend& send) { return send.number == number; });
  if (found == sends_.end()) return;
  if (static_cast<size_t>(found - sends_.begin()) < done_) done_--;
  forget(*found);
  sends_.erase(found);
  assert_consistent();
}

void PostedSends::clear() {
  const std::lock_guard lock(mutex_);
  for (const PostedSend& send : sends_) forget(send);
  sends_.clear();
  done_ = 0;
  in_error_.clear();
  polled_flushes_ = 0;
  assert_consistent();
}

bool PostedSends::add_in_error(uint32_t qpn, uint64_t id) {
  const std::lock_guard lock(mutex_);
  qpn_in_error_ = qpn;
  in_error_.push_back({id, polled_flushes_});
  if (in_error_.size() > most_) in_error_.pop_front();
  assert_consistent();
  return polled_flushes_ >= kFlushesToNotice && pthread_equal(flushes_polled_by_, pthread_self()) != 0;
}

void PostedSends::polled_flush(uint32_t qpn, uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (qpn != qpn_in_error_) return;
  const auto found =
      std::find_if(in_error_.begin(), in_error_.end(), [id](const InError& each) { return each.id == id; });
  if (found == in_error_.end()) return;
  const unsigned before = found->flushes_before;
  in_error_.erase(found);
  // Another thread may not know yet what this one has polled.
  if (pthread_equal(flushes_polled_by_, pthread_self()) == 0) polled_flushes_ = 0;
  flushes_polled_by_ = pthread_self();
  if (before >= polled_flushes_) polled_flushes_++;
  assert_consistent();
}

// The queue pair executes its requests in order, so of several with the same segments it is the oldest.
PostedSend* PostedSends::waiting_at(std::span<const roce::Segment> segments, uint64_t offset) {
  assert_held(mutex_);
  while (done_ < sends_.size() && is_done(sends_[done_])) done_++;
  for (size_t i = done_; i < sends_.size(); i++) {
    PostedSend& send = sends_[i];
    if (!send.has_result && send.sent == offset && same(send.segments, segments)) return &send;
  }
  return nullptr;
}

std::optional<Stack> PostedSends::waiting(std::span<const roce::Segment> segments, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const PostedSend* send = waiting_at(segments, offset);
  return send == nullptr ? std::nullopt : std::optional(send->stack);
}

std::optional<PostedSends::Change> PostedSends::take(std::span<const roce::Segment> segments, uint64_t offset,
                                                     const std::byte* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  PostedSend* send = waiting_at(segments, offset);
  if (send == nullptr || is_done(*send)) return std::nullopt;
  std::optional<Change> change;
  if (send->copy != nullptr && send->copy->has(offset, size)) {
    if (const std::optional<size_t> at = send->copy->difference(offset, bytes, size)) change = {*at, send->stack};
  }
  send->sent += size;
  assert(send->sent <= roce::length_of(send->segments));
  if (is_done(*send)) {
    all_waiting_.fetch_sub(1);
    send->copy.reset();
  }
  assert_consistent();
  return change;
}

std::optional<Stack> PostedSends::with_result(std::span<const roce::Segment> segments) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(sends_.rbegin(), sends_.rend(), [&](const PostedSend& send) {
    return send.has_result && same(send.segments, segments);
  });
  return found == sends_.rend() ? std::nullopt : std::optional(found->stack);
}

// Compares the addresses of the segments. Regions whose iova is not their address have no copies.
void PostedSends::overwritten(const std::byte* memory, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  for (PostedSend& send : sends_) {
    if (send.has_result || send.overwritten) continue;
    for (const roce::Segment& segment : send.segments) {
      if (segment.address >= begin + size || begin >= segment.address + segment.length) continue;
      send.copy.reset();
      send.overwritten = true;
      break;
    }
  }
}

}  // namespace dapple::soft::check

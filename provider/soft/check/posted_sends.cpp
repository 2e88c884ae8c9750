// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/posted_sends.hpp"

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

uint64_t PostedSends::add(PostedSend send) {
  const std::lock_guard lock(mutex_);
  send.number = next_number_++;
  sends_.push_back(std::move(send));
  if (sends_.size() > most_) sends_.pop_front();
  assert(sends_.size() <= most_);
  return next_number_ - 1;
}

void PostedSends::keep(uint64_t number, SharedCopy copy) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(sends_.begin(), sends_.end(), [&](const PostedSend& send) { return send.number == number; });
  // An older request with the same segments, which is sent again, counts as this one.
  if (found == sends_.end() || found->overwritten || found->sent != 0) return;
  assert(found->copy == nullptr);
  found->copy = std::move(copy);
}

void PostedSends::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(sends_.begin(), sends_.end(), [&](const PostedSend& send) { return send.number == number; });
  if (found == sends_.end()) return;
  sends_.erase(found);
}

void PostedSends::clear() {
  const std::lock_guard lock(mutex_);
  sends_.clear();
}

// The queue pair executes its requests in order, so of several with the same segments it is the oldest.
PostedSend* PostedSends::waiting_at(std::span<const roce::Segment> segments, uint64_t offset) {
  for (PostedSend& send : sends_) {
    if (!send.has_result && send.sent == offset && same(send.segments, segments)) return &send;
  }
  return nullptr;
}

std::optional<Stack> PostedSends::waiting(std::span<const roce::Segment> segments, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const PostedSend* send = waiting_at(segments, offset);
  return send == nullptr ? std::nullopt : std::optional(send->stack);
}

std::optional<uint64_t> PostedSends::take(std::span<const roce::Segment> segments, uint64_t offset,
                                          const std::byte* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  PostedSend* send = waiting_at(segments, offset);
  if (send == nullptr) return std::nullopt;
  std::optional<uint64_t> changed_at;
  if (send->copy != nullptr && offset + size <= send->copy->bytes.size()) {
    const auto copy = send->copy->bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    const std::byte* differs = std::mismatch(bytes, bytes + size, copy).first;
    if (differs != bytes + size) changed_at = offset + static_cast<uint64_t>(differs - bytes);
  }
  send->sent += size;
  assert(send->sent <= roce::length_of(send->segments));
  if (send->sent == roce::length_of(send->segments)) send->copy.reset();
  return changed_at;
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/receives.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace dapple::sim {

void Receives::post() {
  uint64_t buffer = 0;
  if (buffers_.empty()) {
    buffer = memory_.allocate(size_);
    if (buffer == 0) return referee_.fail("the arena is too small");
  } else {
    buffer = buffers_.back();
    buffers_.pop_back();
  }
  std::memset(memory_.at(buffer), 0xEE, size_);
  uint32_t size = size_;
  if (random_.in_thousand(short_ones)) {
    size = static_cast<uint32_t>(random_.below(size_));
    had_short = true;
  }
  roce::WholeReceiveRequest request;
  request.id = ++last_id_;
  request.segment_count = static_cast<uint32_t>(random_.between(1, segments));
  const uint32_t key = random_.one_of(keys);
  uint64_t address = buffer;
  for (uint32_t i = 0; i < request.segment_count; ++i) {
    const uint32_t rest = static_cast<uint32_t>(buffer + size - address);
    const uint32_t piece = i + 1 == request.segment_count ? rest : static_cast<uint32_t>(random_.below(rest + 1));
    request.segments[i] = {address, piece, key};
    address += piece;
  }
  posted_.push_back(request);
}

void Receives::clear() {
  for (auto* queue : {&posted_, &taken_}) {
    for (const roce::ReceiveRequest& request : *queue) buffers_.push_back(request.segments[0].address);
    queue->clear();
  }
}

bool Receives::take(roce::ReceiveRequest& request) {
  if (posted_.empty()) return false;
  request = posted_.front();
  taken_.push_back(posted_.front());
  posted_.pop_front();
  return true;
}

bool Receives::completed(uint64_t id, roce::ReceiveRequest& request) {
  const auto found =
      std::find_if(taken_.begin(), taken_.end(), [id](const roce::ReceiveRequest& each) { return each.id == id; });
  if (found == taken_.end() || (!is_shared_ && found != taken_.begin())) {
    referee_.fail("receive %" PRIu64 " completed twice, out of order, or was never taken", id);
    return false;
  }
  request = *found;
  taken_.erase(found);
  buffers_.push_back(request.segments[0].address);
  return true;
}

std::vector<std::byte> Receives::bytes(const roce::ReceiveRequest& request, uint64_t size) {
  std::vector<std::byte> all;
  for (uint32_t i = 0; i < request.segment_count; ++i) {
    const std::byte* from = memory_.at(request.segments[i].address);
    all.insert(all.end(), from, from + std::min<uint64_t>(request.segments[i].length, size - all.size()));
  }
  return all;
}

}  // namespace dapple::sim

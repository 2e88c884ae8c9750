// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/heap/requests.hpp"

#include <stdint.h>

#include <atomic>

namespace dapple::heap {
namespace {

enum class State : uint8_t { kFilling, kOpen, kEnded, kLeftAlone };

struct Request {
  std::atomic<const void*> id{nullptr};  // null: free
  std::atomic<State> state{State::kFilling};
  const void* listener = nullptr;
};

constexpr size_t kRequests = 4096;
constinit Request requests[kRequests] = {};

Request* find(const void* id) {
  for (Request& request : requests) {
    if (request.id.load(std::memory_order_acquire) == id) return &request;
  }
  return nullptr;
}

}  // namespace

void note_request(const void* id, const void* listener) {
  for (Request& request : requests) {
    State ended = State::kEnded;
    if (request.id.load(std::memory_order_acquire) != nullptr && request.listener == listener)
      request.state.compare_exchange_strong(ended, State::kLeftAlone);
  }
  for (Request& request : requests) {
    const void* free = nullptr;
    if (!request.id.compare_exchange_strong(free, id)) continue;
    request.listener = listener;
    request.state.store(State::kOpen, std::memory_order_release);
    return;
  }
}

void note_end_of_connection(const void* id) {
  Request* request = find(id);
  State open = State::kOpen;
  if (request != nullptr) request->state.compare_exchange_strong(open, State::kEnded);
}

void forget_request(const void* id) {
  Request* request = find(id);
  if (request == nullptr) return;
  request->state.store(State::kFilling);
  request->id.store(nullptr, std::memory_order_release);
}

size_t ids_left_alone(const void** ids, size_t most) {
  size_t count = 0;
  for (const Request& request : requests) {
    const void* id = request.id.load(std::memory_order_acquire);
    if (id == nullptr || request.state.load(std::memory_order_acquire) != State::kLeftAlone) continue;
    if (count < most) ids[count] = id;
    count++;
  }
  return count;
}

}  // namespace dapple::heap

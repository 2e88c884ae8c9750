// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A list of requests whose last one leads back to one of them: `next` of a request that is used again still has its old
// value. The device posts such a list until its queue is full. Whoever walks a list further must look for a circle.
#pragma once

#include <cassert>
#include <optional>

namespace dapple::provider {

template <typename Request>
struct RequestCircle {
  const Request* last;   // its `next` leads back
  const Request* first;  // to this one
};

// Brent's algorithm: in linear time, without memory.
template <typename Request>
std::optional<RequestCircle<Request>> find_circle(const Request* list) {
  if (list == nullptr || list->next == nullptr) return std::nullopt;
  const Request *slow = list, *fast = list->next;
  for (unsigned long length = 1, limit = 1; fast != slow; fast = fast->next, length++) {
    if (fast == nullptr) return std::nullopt;
    if (length < limit) continue;
    slow = fast;
    limit *= 2;
    length = 0;
  }
  unsigned long length = 1;
  for (fast = slow->next; fast != slow; fast = fast->next) length++;
  const Request* first = fast = list;
  for (unsigned long i = 0; i < length; i++) fast = fast->next;
  for (; fast != first; fast = fast->next) first = first->next;
  const Request* last = first;
  for (unsigned long i = 1; i < length; i++) last = last->next;
  assert(last->next == first);
  return RequestCircle<Request>{last, first};
}

}  // namespace dapple::provider

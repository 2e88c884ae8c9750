// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/xrc_domain.hpp"

namespace dapple::sim {

XrcQueue& XrcDomain::add(Key key, uint32_t receive_size, uint32_t segments) {
  queues_.push_back({next_number_++, key.domain, memory_.add_key(key), false,
                     Receives(referee_, random_, memory_, receive_size, true)});
  XrcQueue& queue = queues_.back();
  queue.receives.keys = {queue.key};
  queue.receives.segments = segments;
  return queue;
}

// The program may deregister the memory of the receives then, or use it for something else.
void XrcDomain::destroy(XrcQueue& queue) {
  queue.is_destroyed = true;
  queue.receives.clear();
  if (random_.in_thousand(500)) memory_.revoke(queue.key);
}

XrcQueue* XrcDomain::find(uint32_t number) {
  for (XrcQueue& queue : queues_)
    if (queue.number == number) return queue.is_destroyed ? nullptr : &queue;
  return nullptr;
}

}  // namespace dapple::sim

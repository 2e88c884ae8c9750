// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An XRC domain of a node: the shared receive queues that peers name by number.
#pragma once

#include <cstdint>
#include <deque>

#include "tests/sim/memory.hpp"
#include "tests/sim/random.hpp"
#include "tests/sim/receives.hpp"
#include "tests/sim/referee.hpp"

namespace dapple::sim {

// Protection domains. Queues of XRC may have the other one.
constexpr uint32_t kDomain = 7;
constexpr uint32_t kOtherDomain = 9;

struct XrcQueue {
  uint32_t number = 0;
  uint32_t domain = 0;  // the protection domain of its receives, and of the memory that requests reach through it
  uint32_t key = 0;     // of its receives alone
  bool is_destroyed = false;
  Receives receives;
};

class XrcDomain {
 public:
  XrcDomain(Referee& referee, Random& random, SimMemory& memory, uint32_t first_number)
      : referee_(referee), random_(random), memory_(memory), next_number_(first_number) {}

  // key: without its number.
  XrcQueue& add(Key key, uint32_t receive_size, uint32_t segments);
  void destroy(XrcQueue& queue);
  // Null if there is none, or it was destroyed.
  XrcQueue* find(uint32_t number);
  // Also those that were destroyed, in the order of their numbers.
  std::deque<XrcQueue>& queues() { return queues_; }

 private:
  Referee& referee_;
  Random& random_;
  SimMemory& memory_;
  uint32_t next_number_;
  std::deque<XrcQueue> queues_;  // a queue stays where it is
};

}  // namespace dapple::sim

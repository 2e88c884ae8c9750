// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A receive queue, of one queue pair or shared, and its rules: each receive completes once.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "roce/host/ports.hpp"
#include "tests/sim/memory.hpp"
#include "tests/sim/random.hpp"
#include "tests/sim/referee.hpp"

namespace dapple::sim {

class Receives final : public roce::ReceiveSource {
 public:
  // Buffers of `size` bytes under one of `keys`. If an application makes mistakes, some buffers are short.
  Receives(Referee& referee, Random& random, SimMemory& memory, uint32_t size, bool is_shared)
      : referee_(referee), random_(random), memory_(memory), size_(size), is_shared_(is_shared) {}

  std::vector<uint32_t> keys;
  uint32_t segments = 1;    // of a receive, at most
  uint32_t short_ones = 0;  // in a thousand
  bool had_short = false;

  void post();
  size_t posted_count() const { return posted_.size(); }
  size_t taken_count() const { return taken_.size(); }
  bool is_shared() const { return is_shared_; }
  uint32_t size() const { return size_; }
  // Forgets the posted receives, because their queue pair was reset.
  void clear();

  bool take(roce::ReceiveRequest& request) override;
  // Removes and returns the receive of this completion; null if a rule is broken.
  bool completed(uint64_t id, roce::ReceiveRequest& request);
  // Its first bytes, at most `size`.
  std::vector<std::byte> bytes(const roce::ReceiveRequest& request, uint64_t size);

 private:
  Referee& referee_;
  Random& random_;
  SimMemory& memory_;
  uint32_t size_;
  bool is_shared_;
  uint64_t last_id_ = 0;
  std::deque<roce::WholeReceiveRequest> posted_;
  std::deque<roce::WholeReceiveRequest> taken_;
  std::vector<uint64_t> buffers_;  // free ones
};

}  // namespace dapple::sim

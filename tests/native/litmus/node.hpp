// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A node of a litmus test: a process with the device, connected to the other one.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/litmus/program.hpp"

namespace dapple::litmus {

// A word of memory has a cache line of its own.
struct alignas(64) Word {
  std::atomic<uint64_t> value{0};
};

// Shared by both processes.
struct Stage {
  std::atomic<uint32_t> qpn[kNodes][kPairs];
  std::atomic<uint32_t> rkey[kNodes];
  std::atomic<uint32_t> arrived[kNodes];  // at the meetings so far
  std::atomic<bool> is_over{false};
  Outcome loaded[kNodes];  // by the nodes; only the loads count
  // Registered, and mapped at the same address by both.
  alignas(4096) Word words[kWords + kNodes];
};

class Node {
 public:
  Node(Stage& stage, int number) : stage_(stage), number_(number), random_(static_cast<unsigned>(number)) {}
  bool open();

  // Both nodes run the program once. True with the outcome; false if it failed, which is reported.
  bool run(const Program& program, Outcome& outcome);

 private:
  // Waits until the other node is here, too. False if it does not come.
  bool meet();
  bool execute(const Step& step);
  bool post(const Step& step);
  bool poll(int pair);
  bool await_change(int word);
  // Until all requests of this node have their effect.
  bool settle(const std::vector<Step>& steps);
  void wait_a_little();

  Stage& stage_;
  const int number_;
  std::minstd_rand random_;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cqs_[kPairs] = {};
  ibv_qp* qps_[kPairs] = {};
  uint32_t meetings_ = 0;
  uint32_t unpolled_[kPairs] = {};
  size_t loads_ = 0;
};

}  // namespace dapple::litmus

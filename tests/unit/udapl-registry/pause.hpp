// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/udapl-registry/fake_provider.hpp"

/// Keeps a function of the fake provider from returning until it is released. Its hooks are for one thread's call.
class Pause {
 public:
  FakeHook hook() {
    return {[](void* self) { static_cast<Pause*>(self)->stay(); }, this};
  }
  void wait_until_reached() const { wait_for(reached_); }
  void end() { ended_ = true; }

 private:
  static void wait_for(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void stay() {
    reached_ = true;
    wait_for(ended_);
  }
  std::atomic<bool> reached_{false}, ended_{false};
};

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Buffers for packets, kept for the next sender.
#pragma once

#include <stdint.h>

#include <memory>

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

// Internally locked.
class BatchPool {
 public:
  explicit BatchPool(Wire& wire) : wire_(wire) {}

  // Null without memory.
  std::unique_ptr<SendBatch> take();
  void give(std::unique_ptr<SendBatch> batch);

 private:
  // More threads rarely send at the same time.
  static constexpr uint32_t kKept = 8;

  Wire& wire_;
  BiasedMutex mutex_{LockRank::kBatchPool};
  std::unique_ptr<SendBatch> kept_[kKept];
  uint32_t count_ = 0;
};

}  // namespace dapple::soft

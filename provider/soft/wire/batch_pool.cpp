// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/batch_pool.hpp"

#include <cassert>
#include <utility>

namespace dapple::soft {

std::unique_ptr<SendBatch> BatchPool::take() {
  {
    const BiasedLock lock(mutex_);
    if (count_ > 0) return std::move(kept_[--count_]);
  }
  return std::unique_ptr<SendBatch>(wire_.make_batch());
}

void BatchPool::give(std::unique_ptr<SendBatch> batch) {
  const BiasedLock lock(mutex_);
  assert(batch != nullptr && count_ <= kKept);
  if (count_ < kKept) kept_[count_++] = std::move(batch);
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>

#include <atomic>

#include "provider/common/stack.hpp"

namespace dapple::soft {

// Under dapple-run --hang and --check: the thread between ibv_start_poll() and ibv_end_poll() of a completion queue, or
// between ibv_wr_start() and ibv_wr_complete() of a queue pair. It has the lock of the batch, and writes both.
struct OpenBatch {
  std::atomic<pthread_t> thread{0};  // 0: none
  std::atomic<const provider::Stack*> began{nullptr};
};

}  // namespace dapple::soft

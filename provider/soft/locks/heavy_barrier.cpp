// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/locks/heavy_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

// A store leaves a running CPU's buffer in a tiny fraction of this, and a thread that is not running has none there.
constexpr timespec kLongForAStore = {0, 2'000'000};

bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

constinit std::atomic<bool> heavy_barriers_work{false};

void prepare_heavy_barriers() {
  const CancelGuard whole;
  // Threads may count on them from the first success on; heavy_barrier() finds another way if the kernel refuses later.
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) heavy_barriers_work.store(true, std::memory_order_relaxed);
}

void heavy_barrier() {
  const CancelGuard whole;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // The program may have installed a filter since that forbids the call.
  nanosleep(&kLongForAStore, nullptr);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace dapple::soft

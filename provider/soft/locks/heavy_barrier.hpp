// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A pair of barriers between two threads of this process. One thread stores x and loads y, and the other stores y and
// loads x; with a barrier between the store and the load of each, at least one of them sees the other's store. The
// light barrier costs no instruction, because the heavy one makes the kernel order the accesses of all threads. So the
// light one belongs where a program does its work, and the heavy one where something rare happens.
#pragma once

#include <atomic>

namespace dapple::soft {

// Asks the kernel for heavy barriers. Any thread may call it at any time, and again in a child of fork().
void prepare_heavy_barriers();

extern constinit std::atomic<bool> heavy_barriers_work;
// False if the kernel refuses them. Then both threads need other barriers.
inline bool have_heavy_barriers() {
  return heavy_barriers_work.load(std::memory_order_relaxed);
}

inline void light_barrier() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Needs have_heavy_barriers(). Takes a microsecond or two.
void heavy_barrier();

}  // namespace dapple::soft

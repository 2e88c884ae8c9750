// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An architecture for which nobody has written a back end: it orders, for coherent devices, and says that it can do no
// maintenance.
#include <unistd.h>

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"
#include "coherence/once.hpp"

namespace dapple::coherence {
namespace {

// Stronger than any single caller needs, since what is weaker is not known here.
void full_barrier() noexcept {
  __sync_synchronize();
}

// Only advice (alignment) depends on these, no maintenance: where libc does not know the line, common sizes serve.
constexpr uint32_t kGuessedLineSizeBytes = 64;
constexpr uint32_t kGuessedGranuleBytes = 128;

BackEnd describe() noexcept {
  BackEnd back_end = {};
  uint32_t line_size_bytes = kGuessedLineSizeBytes;
  const long reported = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  if (reported > 0 && reported <= 65536 && is_power_of_two(static_cast<uint64_t>(reported))) {
    line_size_bytes = static_cast<uint32_t>(reported);
  }
  back_end.cpu.architecture = "unsupported";
  back_end.cpu.clean_instruction = "none";
  back_end.cpu.clean_invalidate_instruction = "none";
  back_end.cpu.completion_instruction = "none";
  back_end.cpu.line_size_bytes = line_size_bytes;
  back_end.cpu.writeback_granule_bytes =
      line_size_bytes > kGuessedGranuleBytes ? line_size_bytes : kGuessedGranuleBytes;
  back_end.complete_maintenance = full_barrier;
  back_end.order_before_maintenance = full_barrier;
  back_end.order_before_device_reads = full_barrier;
  back_end.order_after_device_writes = full_barrier;
  back_end.full_barrier = full_barrier;
  return back_end;
}

}  // namespace

const BackEnd& cpu_back_end() noexcept {
  return make_once<describe>();
}

}  // namespace dapple::coherence

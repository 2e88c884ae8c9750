// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The back end for architectures without their own: it orders accesses, for coherent devices, and reports that it
// cannot do maintenance.
#include "coherence/cache.hpp"
#include "coherence/line_guess.hpp"
#include "coherence/once.hpp"

namespace dapple::coherence {
namespace {

// The compiler's full fence serves for every kind of ordering: weaker fences are not known for an unknown architecture.
void full_barrier() noexcept {
  __sync_synchronize();
}

BackEnd describe() noexcept {
  BackEnd back_end = {};
  back_end.cpu.architecture = "unsupported";
  back_end.cpu.clean_instruction = "none";
  back_end.cpu.clean_invalidate_instruction = "none";
  back_end.cpu.completion_instruction = "none";
  back_end.cpu.line_size_bytes = guess_line_size_bytes();
  back_end.cpu.writeback_granule_bytes = guess_granule_bytes(back_end.cpu.line_size_bytes);
  back_end.cpu.refusal = "no cache operations have been written for this architecture";
  back_end.complete_maintenance = full_barrier;
  back_end.complete_persistence = full_barrier;
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

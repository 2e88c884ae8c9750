// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/ppc64le.hpp"

#include <sys/auxv.h>

#include "coherence/once.hpp"

namespace dapple::coherence {
namespace ppc64le {
namespace {

void dcbst_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("dcbst 0, %0" : : "r"(line) : "memory");
  });
}

// L = 0, which acts on all CPUs' caches and reaches memory; dcbfl and dcbflp act only on this core's.
void dcbf_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("dcbf 0, %0" : : "r"(line) : "memory");
  });
}

// "ps": to persistent storage. It keeps the line, where dcbfps would drop it.
void dcbstps_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile(
        ".machine push\n"
        ".machine power10\n"
        "dcbstps 0, %0\n"
        ".machine pop"
        :
        : "r"(line)
        : "memory");
  });
}

// sync is the only barrier that orders everything, dcbst and dcbf included, and waits.
void full_barrier() noexcept {
  asm volatile("sync" : : : "memory");
}

// Waits for dcbstps to finish; sync does not.
void complete_persistence() noexcept {
  asm volatile(
      ".machine push\n"
      ".machine power10\n"
      "phwsync\n"
      ".machine pop"
      :
      :
      : "memory");
}

// Orders loads before loads and stores. It does not wait until stores are visible, which is not needed here.
void order_after_device_writes() noexcept {
  asm volatile("lwsync" : : : "memory");
}

BackEnd choose_for_this_cpu() noexcept {
  return choose(read_features());
}

}  // namespace

Features read_features() noexcept {
  return decode_auxv(getauxval(AT_DCACHEBSIZE), getauxval(AT_HWCAP2));
}

BackEnd choose(const Features& features) noexcept {
  BackEnd back_end = {};
  CpuDescription& cpu = back_end.cpu;
  cpu.architecture = "ppc64le";
  cpu.can_clean = true;
  cpu.can_clean_invalidate = true;
  cpu.clean_instruction = "dcbst";
  cpu.clean_invalidate_instruction = "dcbf";
  cpu.completion_instruction = "sync";
  cpu.line_size_bytes = features.block_size_bytes;
  cpu.writeback_granule_bytes = features.block_size_bytes;
  back_end.clean_range = dcbst_range;
  back_end.clean_invalidate_range = dcbf_range;
  back_end.complete_maintenance = full_barrier;
  back_end.complete_persistence = full_barrier;
  if (features.persistence) {
    cpu.can_persist = true;
    cpu.persist_instruction = "dcbstps";
    back_end.persist_range = dcbstps_range;
    back_end.complete_persistence = complete_persistence;
  }
  back_end.order_before_maintenance = full_barrier;
  back_end.order_before_device_reads = full_barrier;
  back_end.order_after_device_writes = order_after_device_writes;
  back_end.full_barrier = full_barrier;
  return back_end;
}

}  // namespace ppc64le

const BackEnd& cpu_back_end() noexcept {
  return make_once<ppc64le::choose_for_this_cpu>();
}

}  // namespace dapple::coherence

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/x86_64.hpp"

#include <cpuid.h>

#include "coherence/once.hpp"

namespace dapple::coherence {
namespace x86_64 {
namespace {

void clwb_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("clwb (%0)" : : "r"(line) : "memory");
  });
}

void clflushopt_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("clflushopt (%0)" : : "r"(line) : "memory");
  });
}

void clflush_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("clflush (%0)" : : "r"(line) : "memory");
  });
}

// clwb and clflushopt are ordered only with older stores to the same line, so a fence must follow them.
//
// The fence is mfence and not sfence, for two reasons. A load may pass sfence: after a clean + invalidate the load
// could be served before the line is dropped. And sfence only orders stores, without waiting (measured: one line and
// sfence 10 ns, one line and mfence 200 ns), but no store of ours precedes a remote peer's access, which can come at
// any moment after we return. The kernel uses mfence towards devices, too.
void complete_maintenance() noexcept {
  asm volatile("mfence" : : : "memory");
}

// Older loads are not ordered before clflushopt. lfence delays everything after it until they are done. Older stores to
// the same line are ordered anyway.
void order_before_maintenance() noexcept {
  asm volatile("lfence" : : : "memory");
}

// The CPU orders stores with stores and loads with loads, so only the compiler needs a barrier. Non-temporal accesses
// are not ordered in that way: code that uses them has its own sfence or lfence.
void compiler_barrier() noexcept {
  asm volatile("" : : : "memory");
}

void full_barrier() noexcept {
  asm volatile("mfence" : : : "memory");
}

BackEnd choose_for_this_cpu() noexcept {
  return choose(read_features());
}

}  // namespace

Features read_features() noexcept {
  CpuidWords words = {};
  words.max_leaf = static_cast<uint32_t>(__get_cpuid_max(0, nullptr));
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (words.max_leaf >= 1) {
    __cpuid(1, eax, ebx, ecx, edx);
    words.leaf1_ebx = ebx;
    words.leaf1_edx = edx;
  }
  if (words.max_leaf >= 7) {
    __cpuid_count(7, 0, eax, ebx, ecx, edx);
    words.leaf7_ebx = ebx;
  }
  return decode_cpuid(words);
}

BackEnd choose(const Features& features) noexcept {
  BackEnd back_end = {};
  CpuDescription& cpu = back_end.cpu;
  cpu.architecture = "x86-64";
  cpu.clean_instruction = "none";
  cpu.clean_invalidate_instruction = "none";
  cpu.completion_instruction = "mfence";
  cpu.line_size_bytes = features.line_size_bytes;
  cpu.writeback_granule_bytes = features.granule_bytes;

  if (features.clflushopt) {
    back_end.clean_invalidate_range = clflushopt_range;
    cpu.clean_invalidate_instruction = "clflushopt";
  } else if (features.clflush) {
    back_end.clean_invalidate_range = clflush_range;
    cpu.clean_invalidate_instruction = "clflush";
  }
  if (features.clwb) {
    back_end.clean_range = clwb_range;
    cpu.clean_instruction = "clwb";
  } else {
    back_end.clean_range = back_end.clean_invalidate_range;
    cpu.clean_instruction = cpu.clean_invalidate_instruction;
  }
  // All three instructions reach the memory controller, whose queues the platform drains when power fails (ADR).
  back_end.persist_range = back_end.clean_range;
  cpu.persist_instruction = cpu.clean_instruction;
  cpu.can_clean = back_end.clean_range != nullptr;
  cpu.can_clean_invalidate = back_end.clean_invalidate_range != nullptr;
  cpu.can_persist = cpu.can_clean;
  if (!cpu.can_clean_invalidate) cpu.refusal = "this CPU has no clflush";

  back_end.complete_maintenance = complete_maintenance;
  back_end.complete_persistence = complete_maintenance;
  back_end.order_before_maintenance = order_before_maintenance;
  back_end.order_before_device_reads = compiler_barrier;
  back_end.order_after_device_writes = compiler_barrier;
  back_end.full_barrier = full_barrier;
  return back_end;
}

}  // namespace x86_64

const BackEnd& cpu_back_end() noexcept {
  return make_once<x86_64::choose_for_this_cpu>();
}

}  // namespace dapple::coherence

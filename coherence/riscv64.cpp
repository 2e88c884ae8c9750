// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/riscv64.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "coherence/line_guess.hpp"
#include "coherence/once.hpp"

namespace dapple::coherence {
namespace riscv64 {
namespace {

// cbo.inval is reserved for the kernel: it would drop data of other processes.
void cbo_clean_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile(
        ".option push\n"
        ".option arch, +zicbom\n"
        "cbo.clean 0(%0)\n"
        ".option pop"
        :
        : "r"(line)
        : "memory");
  });
}

void cbo_flush_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile(
        ".option push\n"
        ".option arch, +zicbom\n"
        "cbo.flush 0(%0)\n"
        ".option pop"
        :
        : "r"(line)
        : "memory");
  });
}

// A fence that names reads, writes, device input and output on both sides orders cache-block operations as well.
void full_barrier() noexcept {
  asm volatile("fence iorw, iorw" : : : "memory");
}

// Towards a device's registers (o) as well as memory.
void order_before_device_reads() noexcept {
  asm volatile("fence ow, ow" : : : "memory");
}

void order_after_device_writes() noexcept {
  asm volatile("fence ir, ir" : : : "memory");
}

BackEnd choose_for_this_cpu() noexcept {
  return choose(read_features());
}

}  // namespace

Features read_features() noexcept {
  // Older C libraries have no name for this system call, whose number never changes.
  constexpr long kRiscvHwprobe = 258;
  HwprobePair pairs[] = {{kKeyImaExt0, 0}, {kKeyZicbomBlockSize, 0}};
  // An empty set of CPUs means all that are online; an extension is reported only if each of them has it.
  const long result = syscall(kRiscvHwprobe, pairs, size_t{2}, size_t{0}, nullptr, 0U);
  return decode_hwprobe({result, pairs[0], pairs[1]});
}

BackEnd choose(const Features& features) noexcept {
  BackEnd back_end = {};
  CpuDescription& cpu = back_end.cpu;
  cpu.architecture = "riscv64";
  cpu.clean_instruction = "none";
  cpu.clean_invalidate_instruction = "none";
  // No instruction is defined that reaches a point of persistence.
  cpu.completion_instruction = "fence iorw, iorw";
  back_end.complete_maintenance = full_barrier;
  back_end.complete_persistence = full_barrier;
  back_end.order_before_maintenance = full_barrier;
  back_end.order_before_device_reads = order_before_device_reads;
  back_end.order_after_device_writes = order_after_device_writes;
  back_end.full_barrier = full_barrier;
  if (!features.zicbom) {
    cpu.line_size_bytes = guess_line_size_bytes();
    cpu.writeback_granule_bytes = guess_granule_bytes(cpu.line_size_bytes);
    cpu.refusal = features.hwprobe ? "this CPU has no Zicbom, or this kernel reserves it (before Linux 6.15)"
                                   : "this kernel has no riscv_hwprobe (before Linux 6.4)";
    return back_end;
  }
  cpu.can_clean = true;
  cpu.can_clean_invalidate = true;
  cpu.clean_instruction = "cbo.clean";
  cpu.clean_invalidate_instruction = "cbo.flush";
  back_end.clean_range = cbo_clean_range;
  back_end.clean_invalidate_range = cbo_flush_range;
  cpu.line_size_bytes = features.block_size != 0 ? features.block_size : kSmallestBlockBytes;
  cpu.writeback_granule_bytes = features.block_size != 0 ? features.block_size : kCommonGranuleBytes;
  return back_end;
}

}  // namespace riscv64

const BackEnd& cpu_back_end() noexcept {
  return make_once<riscv64::choose_for_this_cpu>();
}

}  // namespace dapple::coherence

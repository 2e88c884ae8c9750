// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Cache maintenance towards a device, and the ordering that it needs, for the CPU that this code runs on.
//
// One file per architecture defines cpu_back_end(); the build picks one (unsupported.cpp for other architectures).
// Persistence also depends on the machine: persistence.hpp.
//
// Addresses belong to mapped, readable memory: maintenance of unmapped memory faults as a load does. Maintenance covers
// the whole of each line with a byte of the range. A length of 0 touches nothing. A range that would pass the end of
// the address space stops there. All functions are safe from any thread at any time. Maintenance acts on the caches of
// the whole coherent system; only the waiting (complete_maintenance) belongs to the calling thread. A thread may move
// to another CPU in between, because the kernel's switch has a barrier of the same strength.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapple::coherence {

// The CPU's features. Immutable; strings are static.
struct CpuDescription {
  const char* architecture;                  // the customary name: "x86-64"
  bool can_clean;                            // user space has an instruction that writes lines back
  bool can_clean_invalidate;                 // ... and one that also drops them
  const char* clean_instruction;             // "clwb"; "none"
  const char* clean_invalidate_instruction;  // "clflushopt"; "none"
  const char* completion_instruction;        // the instruction of complete_maintenance()
  uint32_t line_size_bytes;                  // the stride of maintenance; a power of two
  uint32_t writeback_granule_bytes;          // the most that one write-back may touch; a power of two >=
                                             // line_size_bytes
  bool can_persist = false;                  // user space has an instruction that writes lines back to memory that
                                             // survives a loss of power
  const char* persist_instruction = "none";  // "clwb", "dc cvap"; "none"
  const char* refusal = nullptr;             // why maintenance is not possible, as text for the user; null if it is
};

// The operations of one CPU. The operations over a range walk its lines themselves, so a range costs one indirect call
// and a line none. Tests use their own operations. Trivially copyable; points only to static functions.
struct BackEnd {
  CpuDescription cpu;

  // The three arguments are cpu.line_size_bytes and the range. A pointer is null if the CPU has no such instruction.
  using RangeOperation = void (*)(uint32_t line_size_bytes, const void* address, size_t length) noexcept;
  RangeOperation clean_range;
  RangeOperation clean_invalidate_range;
  RangeOperation persist_range;

  // Waits until all maintenance that this thread has issued is done. Later loads, stores, and stores to a device's
  // registers wait too.
  void (*complete_maintenance)() noexcept;
  // The same after persist_range(); the written lines have then arrived where they survive a loss of power.
  void (*complete_persistence)() noexcept;
  // Orders this thread's earlier loads and stores (for example the load of a completion) before later maintenance.
  void (*order_before_maintenance)() noexcept;
  // Coherent device: orders earlier stores to memory before later stores that notify the device or a peer of them.
  void (*order_before_device_reads)() noexcept;
  // Coherent device: orders an earlier load that showed the device's progress before later loads of the data that it
  // wrote.
  void (*order_after_device_writes)() noexcept;
  // Orders every earlier access before every later one, as all observers see them, devices included.
  void (*full_barrier)() noexcept;

  // Writes dirty lines back; the CPU may keep them. Does not wait. Requires cpu.can_clean.
  void clean(const void* address, size_t length) const noexcept { clean_range(cpu.line_size_bytes, address, length); }
  // Writes dirty lines back and drops all lines, so that the next load reads memory. Does not wait. Requires
  // cpu.can_clean_invalidate.
  void clean_invalidate(const void* address, size_t length) const noexcept {
    clean_invalidate_range(cpu.line_size_bytes, address, length);
  }
  // Writes dirty lines back to persistent memory; the CPU may keep them. Does not wait. Requires cpu.can_persist.
  void persist(const void* address, size_t length) const noexcept {
    persist_range(cpu.line_size_bytes, address, length);
  }
};

// The back end of this CPU, which the first call chooses. The reference stays valid.
const BackEnd& cpu_back_end() noexcept;

}  // namespace dapple::coherence

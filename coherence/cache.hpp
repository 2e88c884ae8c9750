// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Cache maintenance towards a device, and the ordering that goes with it, for the CPU that this runs on.
//
// One file per architecture defines cpu_back_end(); the build picks one (unsupported.cpp for other architectures).
// Persistence also depends on the machine: persistence.hpp.
//
// Addresses are of mapped, readable memory: maintenance of unmapped memory faults as a load would. Every line with a
// byte of a range is maintained whole; a length of 0 touches nothing; a range that would pass the end of the address
// space stops there. All functions are safe from any thread at any time, and maintenance acts on the caches of the
// whole coherent system: only the waiting (complete_maintenance) belongs to the calling thread. A thread may move to
// another CPU in between, because the kernel's switch has a barrier of the same strength.
#ifndef DAPPLE_COHERENCE_CACHE_HPP
#define DAPPLE_COHERENCE_CACHE_HPP

#include <stddef.h>
#include <stdint.h>

namespace dapple::coherence {

// The CPU's features. Immutable; strings are static.
struct CpuDescription {
  const char* architecture;                  // as people write it: "x86-64"
  bool can_clean;                            // user space has an instruction that writes lines back
  bool can_clean_invalidate;                 // ... and one that also drops them
  const char* clean_instruction;             // "clwb"; "none"
  const char* clean_invalidate_instruction;  // "clflushopt"; "none"
  const char* completion_instruction;        // what complete_maintenance() executes
  uint32_t line_size_bytes;                  // the stride of maintenance; a power of two
  uint32_t writeback_granule_bytes;          // what one write-back may touch; a power of two >= line_size_bytes
  bool can_persist = false;                  // user space has one that writes back to where memory outlives a power cut
  const char* persist_instruction = "none";  // "clwb", "dc cvap"; "none"
  const char* refusal = nullptr;             // why maintenance cannot be had, for people; null where it can
};

// The operations of one CPU. The operations over a range walk its lines themselves: one indirect call for each range,
// none for each line. Tests use their own. Trivially copyable; points to static functions only.
struct BackEnd {
  CpuDescription cpu;

  // The three arguments: cpu.line_size_bytes, then the range. A null pointer where the CPU has no such instruction.
  using RangeOperation = void (*)(uint32_t line_size_bytes, const void* address, size_t length) noexcept;
  RangeOperation clean_range;
  RangeOperation clean_invalidate_range;
  RangeOperation persist_range;

  // Waits until all maintenance that this thread has issued is done, and holds back all that follows until then: loads,
  // stores, and stores to a device's registers.
  void (*complete_maintenance)() noexcept;
  // The same after persist_range(), and what was written back has arrived where it outlives a power cut.
  void (*complete_persistence)() noexcept;
  // Orders this thread's earlier loads and stores (the load of a completion, say) before maintenance that follows.
  void (*order_before_maintenance)() noexcept;
  // Coherent device: orders earlier stores to memory before later ones that tell the device or a peer of them.
  void (*order_before_device_reads)() noexcept;
  // Coherent device: orders an earlier load that told of the device's writes before later loads of what it wrote.
  void (*order_after_device_writes)() noexcept;
  // Everything before, before everything after, as any observer sees it, devices included.
  void (*full_barrier)() noexcept;

  // Writes dirty lines back; the CPU may keep them. Does not wait. Only where cpu.can_clean.
  void clean(const void* address, size_t length) const noexcept { clean_range(cpu.line_size_bytes, address, length); }
  // Writes dirty lines back and drops all, so that the next load asks memory. Does not wait. Only where
  // cpu.can_clean_invalidate.
  void clean_invalidate(const void* address, size_t length) const noexcept {
    clean_invalidate_range(cpu.line_size_bytes, address, length);
  }
  // Writes dirty lines back to persistence; the CPU may keep them. Does not wait. Only where cpu.can_persist.
  void persist(const void* address, size_t length) const noexcept {
    persist_range(cpu.line_size_bytes, address, length);
  }
};

// The back end of this CPU, chosen once, on the first call. Valid for ever.
const BackEnd& cpu_back_end() noexcept;

}  // namespace dapple::coherence

#endif  // DAPPLE_COHERENCE_CACHE_HPP

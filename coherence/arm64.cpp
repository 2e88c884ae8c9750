// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/arm64.hpp"

#include <sys/auxv.h>

#include "coherence/line_walk.hpp"
#include "coherence/once.hpp"

namespace dapple::coherence {
namespace arm64 {
namespace {

// Linux lets EL0 execute both (SCTLR_EL1.UCI), or traps and emulates them if an erratum requires it. They work to the
// point of coherency, where a device that snoops no cache reads.
void dc_cvac_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("dc cvac, %0" : : "r"(line) : "memory");
  });
}

void dc_civac_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("dc civac, %0" : : "r"(line) : "memory");
  });
}

// dc cvap and dc cvadp by number: assemblers accept the names only with -march=armv8.5-a.
void dc_cvap_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("sys #3, c7, c12, #1, %0" : : "r"(line) : "memory");
  });
}

void dc_cvadp_range(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes, [](uintptr_t line) {
    asm volatile("sys #3, c7, c13, #1, %0" : : "r"(line) : "memory");
  });
}

// Only dsb waits for maintenance; dmb only orders it. The domain is the full system, because a device may be outside
// the inner and outer shareable domains.
void complete_maintenance() noexcept {
  asm volatile("dsb sy" : : : "memory");
}

// Maintenance is ordered with accesses to the same line only. A barrier for loads or for stores alone does not order
// it, so this is the full dmb.
void order_before_maintenance() noexcept {
  asm volatile("dmb osh" : : : "memory");
}

// Coherent devices are in the outer shareable domain. C++ fences reach only the inner one (dmb ish, dmb ishld), which
// holds the CPUs and no device.
void order_before_device_reads() noexcept {
  asm volatile("dmb oshst" : : : "memory");
}

void order_after_device_writes() noexcept {
  asm volatile("dmb oshld" : : : "memory");
}

void full_barrier() noexcept {
  asm volatile("dsb sy" : : : "memory");
}

// EL0 may read CTR_EL0. If the cores of a system differ, Linux traps the read and answers with a value that is safe for
// all cores, so it may be kept.
uint64_t read_ctr_el0() noexcept {
  uint64_t value;
  asm("mrs %0, ctr_el0" : "=r"(value));
  return value;
}

BackEnd choose_for_this_cpu() noexcept {
  return choose(read_cache_type(), read_persistence_point());
}

}  // namespace

CacheType read_cache_type() noexcept {
  return decode_ctr_el0(read_ctr_el0());
}

PersistencePoint read_persistence_point() noexcept {
  return decode_hwcap(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}

BackEnd choose(const CacheType& type, PersistencePoint persistence) noexcept {
  BackEnd back_end = {};
  CpuDescription& cpu = back_end.cpu;
  cpu.architecture = "arm64";
  cpu.can_clean = true;
  cpu.can_clean_invalidate = true;
  cpu.clean_instruction = "dc cvac";
  cpu.clean_invalidate_instruction = "dc civac";
  cpu.completion_instruction = "dsb sy";
  cpu.line_size_bytes = type.line_size_bytes;
  cpu.writeback_granule_bytes = type.writeback_granule_bytes;
  back_end.clean_range = dc_cvac_range;
  back_end.clean_invalidate_range = dc_civac_range;
  if (persistence == PersistencePoint::kDeepPersistence) {
    back_end.persist_range = dc_cvadp_range;
    cpu.persist_instruction = "dc cvadp";
  } else if (persistence == PersistencePoint::kPersistence) {
    back_end.persist_range = dc_cvap_range;
    cpu.persist_instruction = "dc cvap";
  }
  cpu.can_persist = back_end.persist_range != nullptr;
  back_end.complete_maintenance = complete_maintenance;
  back_end.complete_persistence = complete_maintenance;
  back_end.order_before_maintenance = order_before_maintenance;
  back_end.order_before_device_reads = order_before_device_reads;
  back_end.order_after_device_writes = order_after_device_writes;
  back_end.full_barrier = full_barrier;
  return back_end;
}

}  // namespace arm64

const BackEnd& cpu_back_end() noexcept {
  return make_once<arm64::choose_for_this_cpu>();
}

}  // namespace dapple::coherence

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Makes data survive a loss of power, if the CPU and the machine allow it.
//
//   const Persistence& persistence = machine_persistence();
//   if (!persistence.possible) refuse;
//   persist(cpu_back_end(), persistence, address, length);
//   cpu_back_end().complete_persistence();
//
// All functions are safe from any thread at any time.
#pragma once

#include "coherence/cache.hpp"

namespace dapple::coherence {

// The place that a store must reach to survive a loss of power, from the kernel's report about the machine's persistent
// memory.
enum class PersistenceDomain {
  kNone,              // the kernel knows of no persistent memory
  kUnspecified,       // no instruction is known to be sufficient for some of it (virtio-pmem needs fsync)
  kMemoryController,  // data must leave the CPU's caches
  kCpuCaches,         // data must reach the CPU's caches: eADR, a battery writes them back. Only the fence is needed
};

struct Persistence {
  PersistenceDomain domain;
  bool caches_are_persistent;  // domain is kCpuCaches
  bool possible;               // persist() and complete_persistence() are sufficient
  const char* instruction;     // the instruction of persist(): "clwb"; "none" if none is needed or persistence is not
                               // possible
};

// The number of regions of persistent memory in each domain.
struct PersistentRegions {
  unsigned unspecified;
  unsigned memory_controller;
  unsigned cpu_caches;
};

// Reads ROOT/sys/bus/nd/devices/region*/persistence_domain; an unreadable region reports nothing. root is "" for this
// machine. The file deep_flush beside it does not help: it concerns flush hints, which are for root and reach further
// than the domain.
PersistentRegions read_persistent_regions(const char* root) noexcept;

// The weakest domain of all regions counts.
PersistenceDomain read_persistence_domain(const char* root) noexcept;

Persistence decide_persistence(const CpuDescription& cpu, PersistenceDomain domain) noexcept;

// The decision for this CPU and this machine. The first call determines it, so regions that appear later do not count.
// The reference stays valid.
const Persistence& machine_persistence() noexcept;

// Starts writing the range back; back_end.complete_persistence() waits for it. Requires persistence.possible.
inline void persist(const BackEnd& back_end, const Persistence& persistence, const void* address,
                    size_t length) noexcept {
  if (!persistence.caches_are_persistent) back_end.persist(address, length);
}

}  // namespace dapple::coherence

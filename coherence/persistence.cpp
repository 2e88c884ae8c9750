// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/persistence.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coherence/once.hpp"

namespace dapple::coherence {
namespace {

constexpr char kRegions[] = "/sys/bus/nd/devices";
constexpr char kRegionPrefix[] = "region";

// Interprets the file's text, with any line end. Any text other than the two known words means "unspecified".
PersistenceDomain read_region(int regions, const char* name) noexcept {
  char path[NAME_MAX + sizeof("/persistence_domain")];
  snprintf(path, sizeof(path), "%s/persistence_domain", name);
  const int file = openat(regions, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return PersistenceDomain::kUnspecified;
  char text[32] = {};
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  if (length <= 0) return PersistenceDomain::kUnspecified;
  text[strcspn(text, " \t\r\n")] = '\0';
  if (strcmp(text, "cpu_cache") == 0) return PersistenceDomain::kCpuCaches;
  if (strcmp(text, "memory_controller") == 0) return PersistenceDomain::kMemoryController;
  return PersistenceDomain::kUnspecified;
}

Persistence decide_for_this_machine() noexcept {
  return decide_persistence(cpu_back_end().cpu, read_persistence_domain(""));
}

}  // namespace

PersistentRegions read_persistent_regions(const char* root) noexcept {
  PersistentRegions found = {};
  char path[PATH_MAX];
  const int length = snprintf(path, sizeof(path), "%s%s", root, kRegions);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return found;
  DIR* const regions = opendir(path);
  if (regions == nullptr) return found;
  while (const dirent* entry = readdir(regions)) {
    if (strncmp(entry->d_name, kRegionPrefix, sizeof(kRegionPrefix) - 1) != 0) continue;
    switch (read_region(dirfd(regions), entry->d_name)) {
      case PersistenceDomain::kCpuCaches:
        found.cpu_caches++;
        break;
      case PersistenceDomain::kMemoryController:
        found.memory_controller++;
        break;
      default:
        found.unspecified++;
    }
  }
  closedir(regions);
  return found;
}

PersistenceDomain read_persistence_domain(const char* root) noexcept {
  const PersistentRegions regions = read_persistent_regions(root);
  if (regions.unspecified > 0) return PersistenceDomain::kUnspecified;
  if (regions.memory_controller > 0) return PersistenceDomain::kMemoryController;
  return regions.cpu_caches > 0 ? PersistenceDomain::kCpuCaches : PersistenceDomain::kNone;
}

Persistence decide_persistence(const CpuDescription& cpu, PersistenceDomain domain) noexcept {
  Persistence persistence = {domain, domain == PersistenceDomain::kCpuCaches, false, "none"};
  if (persistence.caches_are_persistent) {
    persistence.possible = true;
  } else if (cpu.can_persist && domain != PersistenceDomain::kUnspecified) {
    persistence.possible = true;
    persistence.instruction = cpu.persist_instruction;
  }
  return persistence;
}

const Persistence& machine_persistence() noexcept {
  return make_once<decide_for_this_machine>();
}

}  // namespace dapple::coherence

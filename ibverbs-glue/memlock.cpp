// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/memlock.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "ibverbs-glue/files.hpp"

namespace dapple::verbs {
namespace {

// The text after the word at the beginning of a line; "" if there is none.
const char* value_of(const std::string& text, const char* word) {
  const size_t at = text.find(std::string("\n") + word);
  return at == std::string::npos ? "" : text.c_str() + text.find(':', at) + 1;
}

// The kernel checks the capability in the first user namespace: root in a container's own namespace lacks it.
bool in_first_user_namespace(const std::string& root) {
  std::string map;
  // A kernel without user namespaces has no such file.
  if (read_file((root + "/proc/self/uid_map").c_str(), map) != 0) return true;
  unsigned long inside = 1;
  unsigned long outside = 1;
  unsigned long count = 0;
  return std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 &&  // NOLINT(cert-err34-c)
         inside == 0 && outside == 0 && count == UINT32_MAX;
}

bool explain(int error, const char* what, uint64_t address, uint64_t length, const char* about, char* text,
             size_t size) noexcept {
  // EPERM: no memory may be locked.
  if (error != ENOMEM && error != EPERM) return false;
  const int kept = errno;
  try {
    const Memlock memlock = read_memlock();
    errno = kept;
    const unsigned long long needed_kib = memlock_needed(memlock, address, length) / 1024;
    if (needed_kib == 0) return false;
    std::snprintf(text, size,
                  "%s: %llu KiB may be locked (RLIMIT_MEMLOCK), %llu are locked, %s%llu are needed; raise the limit by "
                  "'ulimit -l %llu' or as dapple-info explains",
                  what, static_cast<unsigned long long>(memlock.soft_bytes / 1024),
                  static_cast<unsigned long long>(memlock.pinned_bytes / 1024), about, needed_kib, needed_kib);
    return true;
  } catch (const std::bad_alloc&) {
    errno = kept;
    return false;
  }
}

}  // namespace

Memlock read_memlock(const std::string& root) {
  Memlock memlock;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    memlock.soft_bytes = limit.rlim_cur;
    memlock.hard_bytes = limit.rlim_max;
  }
  std::string status;
  (void)read_file((root + "/proc/self/status").c_str(), status);
  memlock.pinned_bytes = std::strtoull(value_of(status, "VmPin:"), nullptr, 10) * 1024;
  const bool capable = std::strtoull(value_of(status, "CapEff:"), nullptr, 16) >> CAP_IPC_LOCK & 1;
  memlock.privileged = capable && in_first_user_namespace(root);
  return memlock;
}

uint64_t memlock_needed(const Memlock& memlock, uint64_t address, uint64_t length) {
  if (memlock.privileged || memlock.soft_bytes == RLIM_INFINITY || length == 0) return 0;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t pages = (address % page + length - 1) / page + 1;
  const uint64_t needed = memlock.pinned_bytes + pages * page;
  return needed > memlock.soft_bytes ? needed : 0;
}

bool explain_memlock(int error, uint64_t address, uint64_t length, char* text, size_t size) noexcept {
  char what[64];
  std::snprintf(what, sizeof what, "%llu bytes cannot be registered", static_cast<unsigned long long>(length));
  return explain(error, what, address, length, "", text, size);
}

bool explain_memlock_of_queues(int error, char* text, size_t size) noexcept {
  return explain(error, "a queue cannot be made", 0, kConnectionBytes, "about ", text, size);
}

}  // namespace dapple::verbs

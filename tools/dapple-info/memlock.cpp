// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/memlock.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace dapple::info {
namespace {

std::string size_text(uint64_t bytes) {
  return bytes == RLIM_INFINITY ? "no limit" : fmt::format("{} KiB", bytes / 1024);
}

}  // namespace

bool has_ipc_lock(const std::string& cap_eff_line) {
  const size_t colon = cap_eff_line.find(':');
  if (colon == std::string::npos) return false;
  return std::strtoull(cap_eff_line.c_str() + colon + 1, nullptr, 16) >> CAP_IPC_LOCK & 1;
}

bool is_first_user_namespace(const std::string& uid_map_line) {
  std::istringstream words(uid_map_line);
  uint64_t inside = 1, outside = 1, count = 0;
  words >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == UINT32_MAX;
}

Memlock read_memlock() {
  Memlock memlock;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    memlock.soft_bytes = limit.rlim_cur;
    memlock.hard_bytes = limit.rlim_max;
    memlock.unlimited = limit.rlim_cur == RLIM_INFINITY;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) memlock.privileged = has_ipc_lock(line);
  }
  // A kernel without user namespaces has no such file.
  std::ifstream uid_map("/proc/self/uid_map");
  if (std::string line; std::getline(uid_map, line) && !is_first_user_namespace(line)) memlock.privileged = false;
  return memlock;
}

std::string memlock_for_people(const Memlock& memlock) {
  std::string text = fmt::format("Memory that may be locked (RLIMIT_MEMLOCK): {}; could be raised to: {}\n",
                                 size_text(memlock.soft_bytes), size_text(memlock.hard_bytes));
  if (memlock.privileged) return text + "  This process has CAP_IPC_LOCK: the limit does not apply to it.\n";
  if (memlock.unlimited) return text;
  return text +
         "  Registered memory is locked, and a device's queues count, too. Beyond the limit registration fails with\n"
         "  ENOMEM, in uDAPL with DAT_INSUFFICIENT_RESOURCES. To raise it: 'ulimit -l KIB' in the shell up to the "
         "second\n"
         "  number, a memlock line in /etc/security/limits.d for logins, LimitMEMLOCK=infinity for systemd's "
         "services,\n"
         "  --ulimit memlock=-1 for containers.\n";
}

void memlock_as_json(const Memlock& memlock, Json& json) {
  const auto size = [&json](const char* name, uint64_t bytes) {
    bytes == RLIM_INFINITY ? json.null(name) : json.number(name, bytes);
  };
  json.begin_object("memlock");
  size("soft_bytes", memlock.soft_bytes);
  size("hard_bytes", memlock.hard_bytes);
  json.boolean("privileged", memlock.privileged).end_object();
}

}  // namespace dapple::info

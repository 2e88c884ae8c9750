// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/memlock.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

namespace dapple::info {
namespace {

constexpr uint64_t kConnectionKib = verbs::kConnectionBytes / 1024;
constexpr uint64_t kExampleConnections = 16;
constexpr uint64_t kExampleKib = 1024 * 1024 + kExampleConnections * kConnectionKib;

std::string size_text(uint64_t bytes) {
  return bytes == RLIM_INFINITY ? "no limit" : fmt::format("{} KiB", bytes / 1024);
}

}  // namespace

std::string memlock_for_people(const verbs::Memlock& memlock) {
  std::string text = fmt::format("Memory that may be locked (RLIMIT_MEMLOCK): {}; could be raised to: {}\n",
                                 size_text(memlock.soft_bytes), size_text(memlock.hard_bytes));
  if (memlock.privileged) return text + "  This process has CAP_IPC_LOCK: the limit does not apply to it.\n";
  if (memlock.soft_bytes == RLIM_INFINITY) return text;
  text +=
      "  Registered memory is locked, in whole pages; beyond the limit registration fails with ENOMEM, in uDAPL with\n"
      "  DAT_INSUFFICIENT_RESOURCES and a line with the needed number.\n";
  text += fmt::format(
      "  Needed in KiB: all memory that a process registers at a time, and on a card about {} for the queues of each\n"
      "  connection:\n"
      "  {} for 1 GiB and {} connections, {}.\n",
      kConnectionKib, kExampleKib, kExampleConnections,
      kExampleKib > memlock.soft_bytes / 1024 ? "which is not allowed here" : "which is allowed here");
  text +=
      "  To raise it: 'ulimit -l KIB' in the shell up to the second number above, a memlock line in\n"
      "  /etc/security/limits.d for logins, LimitMEMLOCK=infinity for systemd's services, --ulimit memlock=-1 for "
      "containers.\n";
  return text;
}

Json memlock_as_json(const verbs::Memlock& memlock) {
  const auto size = [](uint64_t bytes) { return bytes == RLIM_INFINITY ? Json() : Json(bytes); };
  return {{"soft_bytes", size(memlock.soft_bytes)},
          {"hard_bytes", size(memlock.hard_bytes)},
          {"pinned_bytes", size(memlock.pinned_bytes)},
          {"privileged", memlock.privileged}};
}

}  // namespace dapple::info

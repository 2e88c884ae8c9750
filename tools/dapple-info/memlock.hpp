// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>

#include "tools/dapple-info/json.hpp"

namespace dapple::info {

// How much memory this process may lock, which is what registration does.
struct Memlock {
  uint64_t soft_bytes = 0;
  uint64_t hard_bytes = 0;
  bool unlimited = false;   // by the limit
  bool privileged = false;  // CAP_IPC_LOCK on the machine: the limit is not asked
};

Memlock read_memlock();
// The line of /proc/self/status that begins with CapEff.
bool has_ipc_lock(const std::string& cap_eff_line);
// The line of /proc/self/uid_map. In another namespace than the first, capabilities are none to the kernel's check.
bool is_first_user_namespace(const std::string& uid_map_line);
std::string memlock_for_people(const Memlock& memlock);
void memlock_as_json(const Memlock& memlock, Json& json);

}  // namespace dapple::info

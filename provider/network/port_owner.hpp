// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

struct PortOwner {
  enum class Kind { kUnknown, kNobody, kKernel, kProcess };
  Kind kind = Kind::kUnknown;
  uid_t uid = 0;
  pid_t process = 0;  // 0: not visible
  char program[32] = "";
};

// Finds the process that has a UDP socket on this port in this network namespace.
PortOwner port_owner(uint16_t port);

// One line for people: the owner of the port, and the remedy.
void describe(const PortOwner& owner, uint16_t port, char* line, size_t size);

}  // namespace dapple::soft

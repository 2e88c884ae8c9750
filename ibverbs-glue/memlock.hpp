// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The amount of memory that this process may lock; registration locks memory. From any thread; throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dapple::verbs {

struct Memlock {
  uint64_t soft_bytes = 0;    // RLIM_INFINITY: no limit
  uint64_t hard_bytes = 0;    // the value to which a program may raise it
  uint64_t pinned_bytes = 0;  // memory of this process that devices use now
  bool privileged = false;    // CAP_IPC_LOCK in the first user namespace: the limit does not apply
};

// root: the folder that holds proc; "" for this machine.
Memlock read_memlock(const std::string& root = {});

// The limit that this process needs for a registration of this range in addition to its pinned memory; 0 if the present
// limit is sufficient.
uint64_t memlock_needed(const Memlock& memlock, uint64_t address, uint64_t length);

// Called after the kernel refused to register this range with this errno value: writes a line, without a newline, that
// names the limit, the needed amount and the remedy. False, with nothing written, if the limit is not the reason, or
// without memory. Throws nothing, and keeps errno.
bool explain_memlock(int error, uint64_t address, uint64_t length, char* text, size_t size) noexcept;

// The memory that a card's driver locks for a connection with queues of 256 requests each way and their completions:
// 256 times up to 256 bytes for a request, 64 for a receive, 2 x 64 for completions, and pages for counters.
constexpr uint64_t kConnectionBytes = 128 * 1024;

// The same after a queue could not be made.
bool explain_memlock_of_queues(int error, char* text, size_t size) noexcept;

}  // namespace dapple::verbs

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
  uint64_t hard_bytes = 0;    // what a program may raise it to
  uint64_t pinned_bytes = 0;  // what devices hold of this process now
  bool privileged = false;    // CAP_IPC_LOCK where it counts: the limit is not asked
};

// root: the folder that holds proc; "" for this machine.
Memlock read_memlock(const std::string& root = {});

// The bytes that this process would have to be allowed to lock for a registration of this range beside what is pinned;
// 0 if the limit is not in its way.
uint64_t memlock_needed(const Memlock& memlock, uint64_t address, uint64_t length);

// For people, after the kernel refused to register this range with this errno value: a line without its end that names
// the limit, the needed amount and the remedy. False, with nothing written, if the limit is not the reason, or without
// memory; throws nothing, and keeps errno.
bool explain_memlock(int error, uint64_t address, uint64_t length, char* text, size_t size) noexcept;

// The memory that a card's driver locks for a connection with queues of 256 requests each way and their completions:
// 256 times up to 256 bytes for a request, 64 for a receive, 2 x 64 for completions, and pages for counters.
constexpr uint64_t kConnectionBytes = 128 * 1024;

// The same after a queue could not be made.
bool explain_memlock_of_queues(int error, char* text, size_t size) noexcept;

}  // namespace dapple::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's files about this process.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dapple::soft::hang {

std::vector<int> threads_of_process();

struct ThreadStatus {
  std::string name;       // empty if there is no such thread
  bool is_ours = false;   // by the signals that it blocks
  bool changes = false;   // makes a thread or ends: the C library has blocked signals, so that is_ours says nothing
  bool runs = false;      // or waits for a CPU or a disk
  uint64_t blocked = 0;   // signals: bit 0 is signal 1
  uint64_t switches = 0;  // how often it has waited
  uint64_t ticks = 0;     // of the CPU
};
ThreadStatus read_thread_status(int thread);

// Waits for up to 0.2 s while the thread changes.
ThreadStatus read_settled_thread_status(int thread);

// The first arguments of a system call.
using CallArguments = std::array<uint64_t, 3>;

struct WaitingCall {
  CallArguments arguments;
  uintptr_t behind;  // its instruction
};

// The system call in which a thread waits. Empty if it runs, and where a kernel or a container does not tell this.
std::optional<WaitingCall> read_waiting_call(int thread);

// The descriptors that an epoll descriptor watches.
std::vector<int> watched_by_epoll(int epoll);

}  // namespace dapple::soft::hang

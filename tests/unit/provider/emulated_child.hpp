// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A test of the emulator in a process of its own, whose standard error is recorded.
#pragma once

#include <infiniband/verbs.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "provider/emulator/emulator.hpp"
#include "tests/unit/provider/heard_child.hpp"

namespace dapple::provider {

inline constexpr size_t kLength = size_t{1} << 20;
inline unsigned char* memory;

inline void* register_memory(size_t offset, size_t length) {
  RegionRequest request = {memory + offset, length, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  void* state = nullptr;
  if (Emulator::running()->before_registration(request, &state) != 0) _exit(100);
  Emulator::running()->registered(state);
  return state;
}

inline void start(ShowFinding show = nullptr) {
  // Removes cmocka's handlers.
  for (const int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) signal(number, SIG_DFL);
  const char* why = nullptr;
  if (Emulator::start(show, &why) == nullptr) _exit(101);
  memory =
      static_cast<unsigned char*>(mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// The exit status of a process that runs this.
inline int status_of(void (*work)(), ShowFinding show = nullptr) {
  return status_of_child(30, [=] {
    start(show);
    work();
    _exit(102);
  });
}

}  // namespace dapple::provider

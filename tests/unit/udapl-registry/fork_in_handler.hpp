// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A signal interrupts a call at any point, and its handler forks: the fork must not wait for locks that the call holds.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

// The number of forks whose child could end at once.
inline int forks_in_handlers;

inline void fork_in_a_handler(int) {
  const int saved = errno;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = -1;
  if (child > 0 && ::waitpid(child, &status, 0) == child && status == 0) ++forks_in_handlers;
  errno = saved;
}

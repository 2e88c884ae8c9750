// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A test in a process of its own, whose standard error is recorded.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dapple::provider {

// The last child's complete output.
inline char said[4096];

// The exit status of a child that runs this and has this much time. The status is 0 if the work returns.
template <typename Work>
int status_of_child(unsigned seconds, Work work) {
  const int file = memfd_create("said", 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    dup2(file, STDERR_FILENO);
    work();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  const ssize_t length = pread(file, said, sizeof said - 1, 0);
  said[length < 0 ? 0 : length] = '\0';
  close(file);
  return status;
}

}  // namespace dapple::provider

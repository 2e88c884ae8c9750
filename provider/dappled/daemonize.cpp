// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/daemonize.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <initializer_list>

namespace dapple::dappled {
namespace {

constexpr int kReady = 3;

void close_from(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  const long most = sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < most; fd++) close(fd);
}

}  // namespace

int daemonize(int ready) {
  const pid_t child = fork();
  // The process that started this one waits for its end.
  if (child != 0) _exit(child > 0 ? 0 : 1);
  setsid();
  // Without /dev, a descriptor that can neither read nor write keeps the numbers 0 to 2 in use.
  int null = open("/dev/null", O_RDWR);
  if (null < 0) null = open("/", O_PATH);
  if (null >= 0) {
    for (int fd = 0; fd <= 2; fd++) {
      if (fd != null) dup2(null, fd);
    }
  }
  if (ready >= 0 && ready != kReady) {
    dup2(ready, kReady);
  }
  close_from(ready >= 0 ? kReady + 1 : kReady);
  if (ready >= 0) fcntl(kReady, F_SETFD, FD_CLOEXEC);
  if (chdir("/") != 0) _exit(1);
  unsetenv("LD_PRELOAD");
  for (const int number : {SIGHUP, SIGPIPE, SIGINT, SIGQUIT, SIGTTOU, SIGTTIN, SIGTSTP}) signal(number, SIG_IGN);
  return ready >= 0 ? kReady : -1;
}

}  // namespace dapple::dappled

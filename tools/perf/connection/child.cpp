// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {

Child::Child(const std::function<bool(const std::function<void(const std::string&)>& tell)>& body) {
  int ends[2] = {-1, -1};
  const pid_t parent = getpid();
  std::fflush(nullptr);
  if (pipe2(ends, O_CLOEXEC) == 0) pid_ = fork();
  if (pid_ < 0) throw Failure(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    const bool good = body([&ends](const std::string& line) {
      const std::string whole = line + "\n";
      if (write(ends[1], whole.data(), whole.size()) < 0) _exit(1);
    });
    // The child ends like a separate program, so that libraries that watch it report.
    std::exit(good ? 0 : 1);
  }
  close(ends[1]);
  read_ = ends[0];
}

Child::~Child() {
  if (read_ >= 0) close(read_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string Child::await_line() {
  std::string line;
  for (char next = 0;;) {
    const ssize_t got = read(read_, &next, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) throw Failure("the server has ended; see its output");
    if (next == '\n') return line;
    line += next;
  }
}

void Child::await_end() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Failure("the server failed; see its output");
}

}  // namespace dapple::perf

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace dapple::info {
namespace {

constexpr size_t kMaxText = 64 * 1024;

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    close_end(read);
    close_end(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

[[noreturn]] void be_child(const std::function<void(int)>& body, const Pipe& out, const Pipe& err) {
  dup2(err.write, STDERR_FILENO);
  // Standard output carries the report, so output of libraries must not get into it.
  dup2(err.write, STDOUT_FILENO);
  try {
    body(out.write);
  } catch (...) {
    _exit(70);
  }
  _exit(0);
}

// Reads the available bytes; closes the end at the end of the file.
void take(int& end, std::string& text) {
  char buffer[4096];
  const ssize_t got = read(end, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return Pipe::close_end(end);
  if (text.size() < kMaxText) text.append(buffer, static_cast<size_t>(got));
}

}  // namespace

ChildResult run_in_child(const std::function<void(int out)>& body, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  ChildResult result;
  Pipe out;
  Pipe err;
  const pid_t child = out.read < 0 || err.read < 0 ? -1 : fork();
  if (child < 0) {
    result.failure = fmt::format("cannot start a process to try it: {}", std::strerror(errno));
    return result;
  }
  if (child == 0) be_child(body, out, err);
  Pipe::close_end(out.write);
  Pipe::close_end(err.write);

  // The answer's pipe closes when the child ends: programs that the child executes do not inherit it.
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  bool late = false;
  while ((out.read >= 0 || err.read >= 0) && !late) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ends[2] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
    const int ready = left > 0 ? poll(ends, 2, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    late = ready <= 0;
    if (ends[0].revents) take(out.read, result.out);
    if (ends[1].revents) take(err.read, result.err);
  }
  if (late) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) {
    result.failure = fmt::format("it did not end within {} s", timeout_ms / 1000);
  } else if (WIFSIGNALED(status)) {
    result.failure = fmt::format("it crashed: {}", strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    result.failure = fmt::format("it ended its process with code {}", WEXITSTATUS(status));
  }
  return result;
}

}  // namespace dapple::info

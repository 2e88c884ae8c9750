// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/records/record_file.hpp"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

// A write beyond RLIMIT_FSIZE, or to a pipe that nobody reads, sends a signal to its thread. By default it would end
// the program, which knows nothing of the file.
class WriteSignalsTaken {
 public:
  WriteSignalsTaken() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&taken_);
    for (const int signal : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending, signal) == 0) sigaddset(&taken_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &taken_, &before_);
  }
  ~WriteSignalsTaken() {
    const timespec now = {};
    if (must_take_) sigtimedwait(&taken_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalsTaken(const WriteSignalsTaken&) = delete;
  WriteSignalsTaken& operator=(const WriteSignalsTaken&) = delete;
  void failed(int error) { must_take_ = error == EFBIG || error == EPIPE; }

 private:
  sigset_t taken_, before_;
  bool must_take_ = false;
};

void skip(iovec*& part, iovec* end, size_t size) {
  for (; part != end && size >= part->iov_len; part++) size -= part->iov_len;
  // The kernel writes no more than it was given.
  assert(part != end || size == 0);
  if (part == end) return;
  part->iov_base = static_cast<char*>(part->iov_base) + size;
  part->iov_len -= size;
}

// 0, or an errno. A part of the record may be in the file then.
int write_whole(int file, iovec* part, iovec* end) {
  WriteSignalsTaken signals;
  while (part != end) {
    const ssize_t written = writev(file, part, static_cast<int>(end - part));
    if (written >= 0) {
      skip(part, end, static_cast<size_t>(written));
    } else if (errno != EINTR) {
      const int error = errno;
      signals.failed(error);
      return error;
    }
  }
  return 0;
}

}  // namespace

void RecordFile::append(std::span<const iovec> parts) {
  assert(file_ && 0 < parts.size() && parts.size() <= kMaxParts);
  if (std::atomic_ref(ended_).load(std::memory_order_relaxed)) return;
  const CancelGuard whole;
  iovec rest[kMaxParts];
  std::copy(parts.begin(), parts.end(), rest);
  if (const int error = write_whole(file_.get(), rest, rest + parts.size()); error != 0) end(error);
}

void RecordFile::end(int error) {
  if (std::atomic_ref(ended_).exchange(true)) return;
  char link[32], name[PATH_MAX], line[PATH_MAX + 128];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file_.get());
  const ssize_t size = readlink(link, name, sizeof name);
  const int length = snprintf(line, sizeof line, "dapple: no more records are written to %.*s: %s\n",
                              size < 0 ? 6 : static_cast<int>(size), size < 0 ? "a file" : name, strerror(error));
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
}

}  // namespace dapple::soft

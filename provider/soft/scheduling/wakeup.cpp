// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/wakeup.hpp"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit bool background = false;

}  // namespace

bool Wakeup::open(Problem& problem) {
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd_ < 0) {
    problem.set(errno, "no descriptor for the software device: %s%s", strerror(errno), descriptor_remedy(errno));
    return false;
  }
  fd_ = hide_own(fd_);
  return true;
}

void Wakeup::wake() const {
  if (background) return;
  const CancelGuard whole;
  const uint64_t one = 1;
  // EAGAIN: it is awake already.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void Wakeup::woken() const {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof count);
}

void Wakeup::close() {
  if (fd_ >= 0) close_own(std::exchange(fd_, -1));
}

void Wakeup::this_is_background() {
  background = true;
}

bool Wakeup::is_background() {
  return background;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The eventfds that wake our sleepers. Calls that do not wait must be no cancellation points, as read() and write() of
// the C library are.
#pragma once

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "udapl/core/unique_fd.hpp"

namespace dapple::dat {

// Not set with errno set on failure.
inline UniqueFd make_event_fd() {
  return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

// Makes it readable.
inline void raise(const UniqueFd& fd) {
  const uint64_t one = 1;
  syscall(SYS_write, fd.get(), &one, sizeof one);  // a full counter is readable as well
}

// Makes it unreadable.
inline void drain(const UniqueFd& fd) {
  uint64_t count;
  syscall(SYS_read, fd.get(), &count, sizeof count);
}

}  // namespace dapple::dat

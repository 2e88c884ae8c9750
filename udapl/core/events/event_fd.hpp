// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The eventfds that wake our sleepers. A call that does not wait must not be a cancellation point, but the C library's
// read() and write() are.
#pragma once

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "udapl/core/unique_fd.hpp"

namespace dapple::udapl {

// Empty, with errno set, on failure.
inline UniqueFd make_event_fd() {
  return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

// Makes the descriptor readable.
inline void raise(const UniqueFd& fd) {
  const uint64_t one = 1;
  syscall(SYS_write, fd.get(), &one, sizeof one);  // a descriptor with a full counter is readable as well
}

// Makes the descriptor unreadable.
inline void drain(const UniqueFd& fd) {
  uint64_t count;
  syscall(SYS_read, fd.get(), &count, sizeof count);
}

}  // namespace dapple::udapl

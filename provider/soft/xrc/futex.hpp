// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Futexes in memory that processes share.
#pragma once

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace dapple::soft {

inline void futex_wake(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Sleeps while the word has this value, for `wait` at most; without an end if it is null.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, const timespec* wait) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, wait, nullptr, 0);
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <errno.h>
#include <pthread.h>

namespace dapple::coherence {

// Runs kMake on the first call, and returns its result from then on, from any thread. Keeps errno. The language's guard
// for a local static would do the same, but belongs to the C++ runtime, and this folder needs only libc.
template <auto kMake>
const auto& make_once() noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static constinit decltype(kMake()) made = {};
  // This check saves all later calls a call into libc, which would be noticeable for a few cache lines.
  static constinit bool is_made = false;
  if (!__atomic_load_n(&is_made, __ATOMIC_ACQUIRE)) {
    const int saved_errno = errno;
    pthread_once(&once, [] {
      made = kMake();
      __atomic_store_n(&is_made, true, __ATOMIC_RELEASE);
    });
    errno = saved_errno;
  }
  return made;
}

}  // namespace dapple::coherence

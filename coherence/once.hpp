// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_COHERENCE_ONCE_HPP
#define DAPPLE_COHERENCE_ONCE_HPP

#include <pthread.h>

namespace dapple::coherence {

// Runs kMake on the first call and returns what it made from then on, from any thread. The language's own guard for a
// local static would do, but lives in the C++ runtime, and this folder needs libc only.
template <auto kMake>
const auto& make_once() noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static constinit decltype(kMake()) made = {};
  // Spares all calls but the first a call into libc, which for a few cache lines counts.
  static constinit bool is_made = false;
  if (!__atomic_load_n(&is_made, __ATOMIC_ACQUIRE)) {
    pthread_once(&once, [] {
      made = kMake();
      __atomic_store_n(&is_made, true, __ATOMIC_RELEASE);
    });
  }
  return made;
}

}  // namespace dapple::coherence

#endif  // DAPPLE_COHERENCE_ONCE_HPP

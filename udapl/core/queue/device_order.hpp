// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Ordering hints for ThreadSanitizer. The record of a work request is written before it is posted and read after its
// completion was polled. Barriers inside libibverbs and the device order the two, but ThreadSanitizer does not see
// them. These functions tell it; in other builds they do nothing.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DAPPLE_UNDER_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define DAPPLE_UNDER_TSAN
#endif

#ifdef DAPPLE_UNDER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace dapple::udapl {

inline void given_to_device([[maybe_unused]] const void* request) {
#ifdef DAPPLE_UNDER_TSAN
  __tsan_release(const_cast<void*>(request));
#endif
}

inline void taken_from_device([[maybe_unused]] const void* request) {
#ifdef DAPPLE_UNDER_TSAN
  __tsan_acquire(const_cast<void*>(request));
#endif
}

}  // namespace dapple::udapl

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>

namespace dapple::soft {

// Called whenever order=random or order=weak of DAPPLE_FAULTS changes the order of bytes or packets. Null: nobody wants
// to know.
inline constinit std::atomic<void (*)()> order_watch{nullptr};

inline void tell_order_watch() {
  if (auto* const watch = order_watch.load(std::memory_order_relaxed); watch != nullptr) watch();
}

}  // namespace dapple::soft

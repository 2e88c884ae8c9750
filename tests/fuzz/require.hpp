// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdlib>

namespace dapple::fuzz {

// Ends the fuzzer, which then reports its input.
inline void require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace dapple::fuzz

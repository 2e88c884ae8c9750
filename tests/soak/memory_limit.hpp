// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace dapple::soak {

// Lets this process have this much more memory than now, until it is destroyed (RLIMIT_AS).
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t more);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace dapple::soak

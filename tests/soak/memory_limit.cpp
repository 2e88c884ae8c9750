// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/memory_limit.hpp"

#include <stdio.h>
#include <unistd.h>

namespace dapple::soak {

MemoryLimit::MemoryLimit(size_t more) {
  getrlimit(RLIMIT_AS, &before_);
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "re");
  if (file == nullptr) return;
  const bool known = fscanf(file, "%zu", &pages) == 1;
  fclose(file);
  rlimit limit = before_;
  limit.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
  if (known) setrlimit(RLIMIT_AS, &limit);
}

MemoryLimit::~MemoryLimit() {
  setrlimit(RLIMIT_AS, &before_);
}

}  // namespace dapple::soak

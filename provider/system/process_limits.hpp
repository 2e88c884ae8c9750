// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace dapple::soft {

// The hard limits that dappled inherits from the program that starts it, and cannot raise.
struct ProcessLimits {
  uint64_t open_files = 0;
  uint64_t address_space = 0;
  uint64_t data = 0;
  uint64_t file_size = 0;

  // Tells whether a dappled with these limits is less limited than one with those, and nowhere more. So two programs do
  // not replace each other's dappled in turns.
  bool allow_more_than(const ProcessLimits& other) const {
    const bool nowhere_less = open_files >= other.open_files && address_space >= other.address_space &&
                              data >= other.data && file_size >= other.file_size;
    const bool more = open_files > other.open_files || address_space > other.address_space || data > other.data ||
                      file_size > other.file_size;
    return nowhere_less && more;
  }
};

inline ProcessLimits hard_limits() {
  const auto hard = [](auto resource) {
    rlimit limit = {};
    return getrlimit(resource, &limit) == 0 ? uint64_t{limit.rlim_max} : 0;
  };
  return {hard(RLIMIT_NOFILE), hard(RLIMIT_AS), hard(RLIMIT_DATA), hard(RLIMIT_FSIZE)};
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The program's limit for the size of a file.
#pragma once

#include <stdint.h>
#include <sys/resource.h>

namespace dapple::provider {

// A program that makes a file larger than its limit is ended by a signal, so this is asked before.
inline bool file_may_have(uint64_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes;
}

}  // namespace dapple::provider

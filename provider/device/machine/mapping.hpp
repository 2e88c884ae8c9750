// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One mapping of this process as /proc/self/smaps shows it.
#pragma once

#include <stdint.h>

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  unsigned major = 0;  // of the file system that holds the file
  unsigned minor = 0;
  uint64_t inode = 0;  // 0: no file
  Path name;           // the file's path, "[heap]", or empty
  bool shared = false;
  // Of VmFlags.
  bool has_flags = false;  // the line is there
  bool device = false;     // io, pf: memory that the kernel has no page structures for
  bool mixed = false;      // mm: such memory in part
  bool huge_pages = false;
};

// Finds the mapping that holds the address. file: /proc/self/smaps, or a test's. Returns 0; EFAULT: no mapping holds
// it; or the errno of reading the file. Allocates nothing. A name's escapes stay as they are.
int find_mapping(const Path& file, uintptr_t address, Mapping& mapping);

}  // namespace dapple::provider

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The lines of /proc/self/maps.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// A mapping of this process.
struct Mapping {
  uintptr_t begin = 0, end = 0;
  char rights[5] = "";            // such as "rw-p"
  unsigned long long offset = 0;  // in the file
  unsigned long long inode = 0;
  char file[160] = "";

  bool is_private() const { return rights[3] == 'p'; }
  // No file, and no other process, has the pages.
  bool is_private_memory() const { return is_private() && inode == 0; }
  // The part of malloc()'s heap that the system names.
  bool is_heap() const { return strcmp(file, "[heap]") == 0; }
  // Of shmget(2).
  bool is_shared_segment() const { return strncmp(file, "/SYSV", 5) == 0; }
};

// In the order of the addresses. Allocates nothing: the program may have no memory.
class Mappings {
 public:
  Mappings();
  // False at the end, or if the file cannot be read.
  bool next(Mapping& mapping);

 private:
  const OwnedFd maps_;
  char text_[1024];
  size_t length_ = 0;
};

}  // namespace dapple::soft

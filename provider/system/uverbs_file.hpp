// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The contents of an open /dev/infiniband/uverbsN: a file in memory that the doors make. So another process that gets
// the descriptor sees what it is.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <cstddef>

namespace dapple::soft {

struct UverbsFile {
  static constexpr size_t kSize = 57;  // of the file

  uint32_t device = 0;   // DeviceInfo::index
  pid_t maker = 0;       // the process that has opened it
  uint64_t network = 0;  // the maker's network namespace, as network_of_process() returns it

  // kSize letters and a NUL.
  void write(char (&text)[kSize + 1]) const;
  // False if the file is another one. Changes no offset.
  bool read(int fd);
};

// The number of this process' network namespace; 0 without /proc.
uint64_t network_of_process();

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include <string>

namespace dapple::soft {

// The same text for all descriptors of a file, also of a pipe, a socket or a terminal. Empty if the descriptor is
// closed.
inline std::string file_identity(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return {};
  char text[40];
  snprintf(text, sizeof text, "%llx:%llx", static_cast<unsigned long long>(status.st_dev),
           static_cast<unsigned long long>(status.st_ino));
  return text;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run tells its programs which file its standard error is. A test runner between them may have taken theirs, and
// may throw away what they write there.
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/common/settings.hpp"

namespace dapple::provider {

// The same text for all descriptors of a file, also of a pipe, a socket or a terminal. Empty if the descriptor is
// closed.
struct FileIdentity {
  explicit FileIdentity(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return;
    snprintf(text, sizeof text, "%llx:%llx", static_cast<unsigned long long>(status.st_dev),
             static_cast<unsigned long long>(status.st_ino));
  }
  char text[40] = "";
};

// True without dapple-run, too.
inline bool has_standard_error_of_dapple_run() {
  const char* const wanted = settings().check_stderr;
  return wanted == nullptr || strcmp(FileIdentity(STDERR_FILENO).text, wanted) == 0;
}

}  // namespace dapple::provider

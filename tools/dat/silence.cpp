// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dat/silence.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace dapple::tools {

Silence::Silence() : before_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
  std::fflush(stderr);
  const int nowhere = before_ < 0 ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

Silence::~Silence() {
  if (before_ < 0) return;
  std::fflush(stderr);
  dup2(before_, STDERR_FILENO);
  close(before_);
}

}  // namespace dapple::tools

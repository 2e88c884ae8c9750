// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <tl/expected.hpp>

#include "udapl/core/unique_fd.hpp"

namespace dapple::dat {

// All of a file of the kernel's, or an errno. Throws std::bad_alloc, which a stream would take for the end of the file.
inline tl::expected<std::string, int> read_file(const char* path) {
  int fd = -1;
  do {
    fd = open(path, O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return tl::unexpected(errno);
  const UniqueFd file(fd);
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t size = read(file.get(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return tl::unexpected(errno);
    if (size == 0) return text;
    text.append(part, static_cast<size_t>(size));
  }
}

}  // namespace dapple::dat

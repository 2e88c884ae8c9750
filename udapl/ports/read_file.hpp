// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace dapple::dat {

// Appends all of a file of the kernel's. Returns 0 or an errno. Throws std::bad_alloc, which a stream would take for
// the end of the file.
inline int read_file(const char* path, std::string& text) {
  struct File {
    const int fd;
    ~File() { close(fd); }
  };
  int fd = -1;
  do {
    fd = open(path, O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno;
  const File file{fd};
  char part[16384];
  for (;;) {
    const ssize_t size = read(file.fd, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    if (size == 0) return 0;
    text.append(part, static_cast<size_t>(size));
  }
}

}  // namespace dapple::dat

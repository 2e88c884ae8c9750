// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/soft/abi/plugin.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {

int renew_async_events(int async_fd, int async_writer) {
  struct stat reading, writing;
  if (fstat(async_fd, &reading) != 0 || fstat(async_writer, &writing) != 0) return -1;
  // Another descriptor of the program may have the number by now.
  if (reading.st_ino != writing.st_ino || reading.st_dev != writing.st_dev) return -1;
  const int flags = fcntl(async_fd, F_GETFL);
  int ends[2];
  if (flags < 0 || pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[0], F_SETFL, flags);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const bool placed = dup3(ends[0], async_fd, O_CLOEXEC) >= 0;
  close(ends[0]);
  if (!placed) {
    close(ends[1]);
    return -1;
  }
  close_own(async_writer);
  return hide_own(ends[1]);
}

}  // namespace dapple::soft

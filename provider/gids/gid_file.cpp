// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <new>

#include "provider/gids/gid_plan.hpp"

namespace dapple::gids {
namespace {

// The file's size, or -1 with errno. EFBIG: there is more than fits.
ssize_t read_whole(int file, char* room, size_t size) {
  size_t used = 0;
  while (used < size) {
    const ssize_t got = pread(file, room + used, size - used, static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) return static_cast<ssize_t>(used);
    used += static_cast<size_t>(got);
  }
  errno = EFBIG;
  return -1;
}

}  // namespace

bool read_gid_file(int file, const char* name, GidPlan& plan, soft::Problem& problem) {
  const std::unique_ptr<char[]> room(new (std::nothrow) char[kMaxGidFile + 1]);
  if (room == nullptr) {
    problem.set(ENOMEM, "no memory to read %.100s", name);
    return false;
  }
  const ssize_t size = read_whole(file, room.get(), kMaxGidFile + 1);
  if (size < 0 && errno == EFBIG) {
    problem.set(EFBIG, "%.100s has more than %zu KiB, so show_gids has not printed it", name, kMaxGidFile / 1024);
    return false;
  }
  if (size < 0 && errno == ESPIPE) {
    problem.set(EINVAL, "%.100s is a pipe, and each program has to read it; write it to a file", name);
    return false;
  }
  if (size < 0) {
    problem.set(errno, "%.100s cannot be read: %s", name, strerror(errno));
    return false;
  }
  soft::Problem wrong;
  if (read_show_gids({room.get(), static_cast<size_t>(size)}, plan, wrong)) return true;
  problem.set(wrong.error, "%.100s: %.130s", name, wrong.line);
  return false;
}

}  // namespace dapple::gids

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/file_inode.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace dapple::soft {

bool FileInode::read(int fd) {
  struct statx status = {};
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) return false;
  device = makedev(status.stx_dev_major, status.stx_dev_minor);
  number = status.stx_ino;
  return true;
}

}  // namespace dapple::soft

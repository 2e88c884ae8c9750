// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the kernel itself knows of an open file's inode. The server of a file (NFS, FUSE) is not asked: it may never
// answer.
#pragma once

#include <stdint.h>

namespace dapple::soft {

struct FileInode {
  uint64_t device = 0;
  uint64_t number = 0;
  bool operator==(const FileInode&) const = default;

  // False if the descriptor is not open; errno has the reason.
  bool read(int fd);
};

}  // namespace dapple::soft

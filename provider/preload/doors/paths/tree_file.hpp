// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Files of the tree, as a program sees those of sysfs.
#pragma once

#include <fcntl.h>

#include "provider/preload/doors/paths/resolved_path.hpp"

struct stat;

namespace dapple::doors {

// As openat(). The file is up to date, and nothing in the tree can be written: EACCES. -1 with errno.
int open_in_tree(const ResolvedPath& at, int flags);

// An open file of the tree that the program reads from its beginning again: the descriptor gets a file with the present
// value. Keeps errno.
void renew_tree_file(int fd);

// Any place but kOther. `mode` is the one of open().
int open_resolved(const ResolvedPath& at, int flags, mode_t mode);

// The same for a program's path; `kernel_open` opens any other path.
template <class Kernel>
int open_by_path(int folder, const char* path, int flags, mode_t mode, Kernel kernel_open) {
  const bool follow = (flags & O_NOFOLLOW) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  return call_by_path(folder, path, follow, kernel_open,
                      [&](const ResolvedPath& at) { return open_resolved(at, flags, mode); });
}

// The status of a file of the tree, as sysfs would show it: root owns it, and a file is a page long.
void present(struct stat& status);

}  // namespace dapple::doors

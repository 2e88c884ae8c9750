// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The folder in which dappled renders the tree, as a hidden descriptor of this process. The folder may lie in another
// mount namespace, so its path is of no use.
//
// Internally locked; the functions block until dappled answers. A signal handler may call them, and a child of vfork(),
// which shares this memory but not the descriptors.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace dapple::doors {

namespace detail {
extern std::atomic<bool> is_tree_in_use;
}

// True if this process has got the tree's folder: only then can a relative path, a working directory or a descriptor
// lead there, apart from those that the process began with.
inline bool is_tree_in_use() {
  return detail::is_tree_in_use.load(std::memory_order_relaxed);
}
// The process began with a working directory or a descriptor in the tree.
void note_tree_in_use();

// Asks dappled at the first call, and again after the death of dappled. -1 with ENOENT, and once a line on standard
// error, if dappled cannot be reached. The descriptor keeps its number.
int tree_root();

// The file system of the tree's folder; 0 before the first call of tree_root().
dev_t tree_device();

// dappled brings a file up to date: its path from the tree's folder. True if a read() of the file has to fail with
// EINVAL.
bool refresh(const char* path);

}  // namespace dapple::doors

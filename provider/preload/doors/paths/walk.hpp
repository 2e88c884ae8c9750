// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Follows a path as the kernel would if the rendered tree lay over the real /sys and /dev.
//
// A name is looked up in the tree first, and in the kernel's files if the tree lacks it. The tree is complete below the
// folders of RDMA devices and in the folder of a PCI function. Its other folders, such as /sys/class/net, only lead
// there: of these, the kernel's folder is shown, if it exists.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace dapple::doors {

inline constexpr size_t kPathSize = 4096;

struct Walked {
  enum class End : uint8_t {
    kTree,    // in the tree: below() from the tree's folder
    kKernel,  // in the kernel's files: `path`
    kFailed,  // `error`. `path` is the path so far, and what is left
  };
  End end = End::kFailed;
  int error = 0;
  mode_t type = 0;       // kTree: the file's type (S_IFMT); 0: it does not exist
  bool folder = false;   // the path ends with a slash: it must be a folder
  size_t size = 0;       // of `path`
  char path[kPathSize];  // absolute, without "..", links and double slashes; only the last name may be a link

  const char* below() const { return path[1] == '\0' ? "." : path + 1; }
};

// `root` is the tree's folder, or negative: then only the kernel's files count. `base` is the absolute path, as the
// program knows it, of the folder where a relative path begins. Makes only system calls, and may be called from a
// signal handler. Needs 9 KiB of stack, the result included.
void walk(int root, const char* base, const char* path, bool follow_last, Walked& walked);

}  // namespace dapple::doors

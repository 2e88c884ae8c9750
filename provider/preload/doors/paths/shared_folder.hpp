// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Folders of the kernel that have entries in the tree, too: /dev, /sys/class and a few others. The kernel opens them,
// and their lists end with the entries that the kernel lacks.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "provider/common/settings.hpp"

namespace dapple::doors {

// The first test: false if no path that ends like this one names such a folder.
inline bool may_be_shared(const char* path) {
  size_t size = path == nullptr ? 0 : strlen(path);
  while (size > 1 && path[size - 1] == '/') --size;
  size_t first = size;
  while (first > 0 && path[first - 1] != '/') --first;
  const auto is = [&](const char* name) {
    return strlen(name) == size - first && memcmp(path + first, name, size - first) == 0;
  };
  if (is(".") || is("..") || is("dev") || is("class") || is("virtual")) return true;
  // Only a chosen identity may have a PCI function.
  return (is("devices") || is("drivers")) && provider::settings().as != nullptr;
}

// The kernel has opened the folder by this path. Keeps errno.
void note_shared_folder(int fd, const char* path);

// The same for the result of an open(). Python opens a folder without O_DIRECTORY.
inline int opened_folder(int fd, const char* path, int flags) {
  if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_PATH) == 0) note_shared_folder(fd, path);
  return fd;
}

// The next entry behind those of the kernel. False at the end, and for any other descriptor. Keeps errno.
bool next_shared_entry(int fd, dirent64& entry);

// The list begins again. Keeps errno.
void rewind_shared_folder(int fd);

}  // namespace dapple::doors

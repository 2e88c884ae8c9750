// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/lists/driver_folder.hpp"

#include <errno.h>
#include <string.h>

#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace {

constexpr char kDriverFolder[] = "/etc/libibverbs.d";

// A device of the kernel needs the drivers, and then the warning is right.
bool has_kernel_devices() {
  DIR* folder = real.opendir("/sys/class/infiniband_verbs");
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(folder)) found |= strncmp(entry->d_name, "uverbs", 6) == 0;
  closedir(folder);
  return found;
}

// An open folder with nothing left to read.
DIR* read_to_its_end(const char* path) {
  DIR* folder = real.opendir(path);
  while (folder != nullptr && readdir(folder) != nullptr) continue;
  return folder;
}

}  // namespace

DIR* driver_folder(const char* path) {
  DIR* const empty = strcmp(path, kDriverFolder) != 0 || has_kernel_devices() ? nullptr : read_to_its_end("/");
  if (empty == nullptr) errno = ENOENT;
  return empty;
}

}  // namespace dapple::doors

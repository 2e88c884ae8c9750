// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libibverbs' folder of names of drivers. A system without the kernel's drivers, such as a small container, lacks it,
// and libibverbs prints a warning in every program.
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "provider/preload/doors/real.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

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

DAPPLE_WRAPPER(opendir, DIR* wrapped_opendir(const char* path)) {
  DIR* const folder = real.opendir(path);
  if (folder != nullptr || errno != ENOENT || strcmp(path, kDriverFolder) != 0) return folder;
  DIR* const empty = has_kernel_devices() ? nullptr : read_to_its_end("/");
  if (empty == nullptr) errno = ENOENT;
  return empty;
}

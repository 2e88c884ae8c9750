// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/lists/passes_tree.hpp"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

extern "C" char* wrapped_realpath(const char* path, char* resolved) __asm__("realpath");

namespace dapple::doors {
namespace {

bool is_in(const char* path, const char* folder) {
  const size_t size = strlen(folder);
  return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

}  // namespace

bool passes_tree(const char* path) {
  const int before = errno;
  char real[PATH_MAX];
  const bool known = path != nullptr && wrapped_realpath(path, real) != nullptr;
  errno = before;
  return known && (strcmp(real, "/") == 0 || is_in(real, "/sys") || is_in(real, "/dev"));
}

}  // namespace dapple::doors

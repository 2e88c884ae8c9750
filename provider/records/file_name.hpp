// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <limits.h>
#include <stddef.h>

namespace dapple::soft {

// Replaces "%p" in a file's name by the process' number, so that each process has its own file. False if the path is
// empty or too long.
bool expand_file_name(const char* name, char* path, size_t size);
inline bool expand_file_name(const char* name, char (&path)[PATH_MAX]) {
  return expand_file_name(name, path, sizeof path);
}

}  // namespace dapple::soft

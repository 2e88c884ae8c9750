// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The next functions, in the order of look-up, of the wrappers with paths that real.hpp lacks.
#pragma once

#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

namespace dapple::doors {

struct LibcNames {
// NOLINTBEGIN(bugprone-macro-parentheses): declarations
#define SIMPLE(name) decltype(&::name) name = nullptr;
#define OTHER(name) decltype(&::name) name = nullptr;
// NOLINTEND(bugprone-macro-parentheses)
#include "provider/preload/doors/paths/libc_names.def"
};

extern LibcNames libc_names;

void* next_function(const char* name);

template <class Function>
Function next(Function& known, const char* name) {
  if (known == nullptr) known = reinterpret_cast<Function>(next_function(name));
  return known;
}
#define NEXT(name) ::dapple::doors::next(::dapple::doors::libc_names.name, #name)

}  // namespace dapple::doors

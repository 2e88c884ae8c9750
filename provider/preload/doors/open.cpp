// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that open files by name.

// With _FORTIFY_SOURCE the C library's headers define open() and openat() inline, and gcc then accepts no alias of a
// function that has this name in assembler.
#undef _FORTIFY_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "provider/preload/doors/files.hpp"
#include "provider/preload/doors/real.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

// Does open() read a mode?
bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

void need_no_mode(int flags) {
  if (!has_mode(flags)) return;
  fputs("dapple: the program calls open() with O_CREAT or O_TMPFILE, but gives no mode\n", stderr);
  abort();
}

// The descriptor of one of our files, or -1; false if the path is not ours.
[[gnu::noinline]] bool open_ours(const char* path, int flags, int& fd) {
  const File file = look_up(path);
  if (file.target == Target::kOther) return false;
  fd = open_file(file, flags);
  return true;
}

}  // namespace

DAPPLE_WRAPPER(open, int wrapped_open(const char* path, int flags, ...)) {
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  if (!has_mode(flags)) return real.open(path, flags);
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  return real.open(path, flags, mode);
}

DAPPLE_WRAPPER(openat, int wrapped_openat(int folder, const char* path, int flags, ...)) {
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  if (!has_mode(flags)) return real.openat(folder, path, flags);
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  return real.openat(folder, path, flags, mode);
}

// On 64-bit machines these functions are the same.
DAPPLE_WRAPPER_ALIAS(open64, open, int wrapped_open64(const char* path, int flags, ...));
DAPPLE_WRAPPER_ALIAS(openat64, openat, int wrapped_openat64(int folder, const char* path, int flags, ...));

// With _FORTIFY_SOURCE the compiler replaces a call without a mode by these functions if it does not know the flags.
// The C library's functions check the flags.
DAPPLE_WRAPPER(__open_2, int wrapped_open_2(const char* path, int flags)) {
  need_no_mode(flags);
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  return real.open(path, flags);
}
DAPPLE_WRAPPER(__openat_2, int wrapped_openat_2(int folder, const char* path, int flags)) {
  need_no_mode(flags);
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  return real.openat(folder, path, flags);
}
DAPPLE_WRAPPER_ALIAS(__open64_2, __open_2, int wrapped_open64_2(const char* path, int flags));
DAPPLE_WRAPPER_ALIAS(__openat64_2, __openat_2, int wrapped_openat64_2(int folder, const char* path, int flags));

DAPPLE_WRAPPER(fopen, FILE* wrapped_fopen(const char* path, const char* mode)) {
  int fd;
  if (maybe_ours(path) && open_ours(path, mode[0] == 'r' && mode[1] != '+' ? O_RDONLY : O_RDWR, fd)) {
    return fd < 0 ? nullptr : fdopen(fd, mode);
  }
  return real.fopen(path, mode);
}
DAPPLE_WRAPPER_ALIAS(fopen64, fopen, FILE* wrapped_fopen64(const char* path, const char* mode));

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that open files by name.

// With _FORTIFY_SOURCE the C library's headers define open() and openat() inline, and gcc then accepts no alias of a
// function that has this name in assembler.
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/shared_folder.hpp"
#include "provider/preload/doors/paths/tree_file.hpp"
#include "provider/preload/doors/process/real.hpp"
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

int open_with_mode(const char* path, int flags, mode_t mode) {
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  return open_by_path(AT_FDCWD, path, flags, mode,
                      [&] { return opened_folder(real.open(path, flags, mode), path, flags); });
}

int openat_with_mode(int folder, const char* path, int flags, mode_t mode) {
  int fd;
  if (maybe_ours(path) && open_ours(path, flags, fd)) return fd;
  return open_by_path(folder, path, flags, mode,
                      [&] { return opened_folder(real.openat(folder, path, flags, mode), path, flags); });
}

// The flags of fopen().
int flags_of(const char* mode) {
  int flags = mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;
  bool both = false;
  for (const char* letter = mode; *letter != '\0' && *letter != ','; ++letter) {
    both |= *letter == '+';
    if (*letter == 'e') flags |= O_CLOEXEC;
    if (*letter == 'x') flags |= O_EXCL;
  }
  return flags | (both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY);
}

FILE* stream_of(int fd, const char* mode) {
  FILE* const stream = fd < 0 ? nullptr : fdopen(fd, mode);
  if (fd >= 0 && stream == nullptr) real.close(fd);
  return stream;
}

// A stream can be opened again only by a path.
FILE* reopened(const ResolvedPath& at, const char* mode, FILE* stream) {
  const int fd = open_resolved(at, flags_of(mode), 0666);
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int error = errno;
  FILE* const again = fd < 0 ? nullptr : NEXT(freopen)(path, mode, stream);
  if (fd >= 0) {
    real.close(fd);
  } else {
    fclose(stream);
    errno = error;
  }
  return again;
}

}  // namespace

DAPPLE_WRAPPER(open, int wrapped_open(const char* path, int flags, ...)) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = has_mode(flags) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_with_mode(path, flags, mode);
}

DAPPLE_WRAPPER(openat, int wrapped_openat(int folder, const char* path, int flags, ...)) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = has_mode(flags) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return openat_with_mode(folder, path, flags, mode);
}

// On 64-bit machines these functions are the same.
DAPPLE_WRAPPER_ALIAS(open64, open, int wrapped_open64(const char* path, int flags, ...));
DAPPLE_WRAPPER_ALIAS(openat64, openat, int wrapped_openat64(int folder, const char* path, int flags, ...));

// With _FORTIFY_SOURCE the compiler replaces a call without a mode by these functions if it does not know the flags.
// The C library's functions check the flags.
DAPPLE_WRAPPER(__open_2, int wrapped_open_2(const char* path, int flags)) {
  need_no_mode(flags);
  return open_with_mode(path, flags, 0);
}
DAPPLE_WRAPPER(__openat_2, int wrapped_openat_2(int folder, const char* path, int flags)) {
  need_no_mode(flags);
  return openat_with_mode(folder, path, flags, 0);
}
DAPPLE_WRAPPER_ALIAS(__open64_2, __open_2, int wrapped_open64_2(const char* path, int flags));
DAPPLE_WRAPPER_ALIAS(__openat64_2, __openat_2, int wrapped_openat64_2(int folder, const char* path, int flags));

DAPPLE_WRAPPER(creat, int wrapped_creat(const char* path, mode_t mode)) {
  return open_with_mode(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
DAPPLE_WRAPPER_ALIAS(creat64, creat, int wrapped_creat64(const char* path, mode_t mode));

DAPPLE_WRAPPER(fopen, FILE* wrapped_fopen(const char* path, const char* mode)) {
  int fd;
  if (maybe_ours(path) && open_ours(path, flags_of(mode), fd)) return stream_of(fd, mode);
  return call_by_path(
      AT_FDCWD, path, true, [&] { return real.fopen(path, mode); },
      [&](const ResolvedPath& at) { return stream_of(open_resolved(at, flags_of(mode), 0666), mode); });
}
DAPPLE_WRAPPER_ALIAS(fopen64, fopen, FILE* wrapped_fopen64(const char* path, const char* mode));

// The call closes the stream first, so it cannot be tried and then repeated.
DAPPLE_WRAPPER(freopen, FILE* wrapped_freopen(const char* path, const char* mode, FILE* stream)) {
  if (may_lead_to_tree(AT_FDCWD, path)) {
    const ResolvedPath at(AT_FDCWD, path, true, false);
    if (at.is_found()) return reopened(at, mode, stream);
  }
  return NEXT(freopen)(path, mode, stream);
}
DAPPLE_WRAPPER_ALIAS(freopen64, freopen, FILE* wrapped_freopen64(const char* path, const char* mode, FILE* stream));

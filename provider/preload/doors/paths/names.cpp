// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that return paths, and those of the working directory. None of them shows where the tree really is.
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "provider/preload/doors/paths/face_mark.hpp"
#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/overflow.hpp"
#include "provider/preload/doors/paths/tree_file.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

// The links of /proc show where descriptors and the working directory really are.
bool may_show_tree(const char* path) {
  return path != nullptr &&
         (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd", 7) == 0 || (path[0] != '/' && is_tree_in_use()));
}

template <class Read>
ssize_t read_shown_link(char* buffer, size_t size, Read read_link) {
  char target[kPathSize];
  const ssize_t real_size = read_link(target, sizeof target - 1);
  if (real_size <= 0) return real_size;
  target[real_size] = '\0';
  const ssize_t shown = show(target, real_size);
  // A caller with less room sees a part of the whole.
  const size_t copied = std::min(static_cast<size_t>(shown), size);
  memcpy(buffer, target, copied);
  return static_cast<ssize_t>(copied);
}

ssize_t link_of_resolved(const ResolvedPath& at, char* buffer, size_t size) {
  switch (at.where) {
    case ResolvedPath::Where::kDoor:
      return refuse(at.file.target == Target::kMissing ? ENOENT : EINVAL);
    case ResolvedPath::Where::kTree:
      return NEXT(readlinkat)(at.root, at.walked.below(), buffer, size);
    case ResolvedPath::Where::kKernel:
      return NEXT(readlinkat)(AT_FDCWD, at.walked.path, buffer, size);
    default:
      return -1;
  }
}

template <class Kernel>
ssize_t link_by_path(int folder, const char* path, char* buffer, size_t size, Kernel kernel) {
  const auto read_link = [&](char* to, size_t room) {
    return call_by_path(
        folder, path, false, [&] { return kernel(to, room); },
        [&](const ResolvedPath& at) { return link_of_resolved(at, to, room); });
  };
  return may_show_tree(path) && size > 0 ? read_shown_link(buffer, size, read_link) : read_link(buffer, size);
}

// A place's absolute path, in `resolved`, or in memory of malloc() if that is null.
char* path_of_resolved(const ResolvedPath& at, char* resolved) {
  const bool missing = at.where == ResolvedPath::Where::kTree
                           ? at.walked.type == 0
                           : at.where == ResolvedPath::Where::kDoor && at.file.target == Target::kMissing;
  if (missing) errno = ENOENT;
  if (missing || at.where == ResolvedPath::Where::kFailed) return nullptr;
  if (at.where == ResolvedPath::Where::kKernel) return NEXT(realpath)(at.walked.path, resolved);
  if (resolved == nullptr) return strdup(at.walked.path);
  memcpy(resolved, at.walked.path, at.walked.size + 1);
  return resolved;
}

char* show_result(char* path) {
  if (path != nullptr) show(path, static_cast<ssize_t>(strlen(path)));
  return path;
}

int change_to_resolved(const ResolvedPath& at) {
  if (at.where == ResolvedPath::Where::kKernel) return NEXT(chdir)(at.walked.path);
  const int fd = open_resolved(at, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int result = fchdir(fd);
  const int error = errno;
  real.close(fd);
  errno = error;
  return result;
}

// The C library's getcwd() looks for the folder in all folders above it if the kernel reports that it lies outside of
// the program's root.
char* folder_in_tree(const char* shown, char* buffer, size_t size) {
  const size_t needed = strlen(shown) + 1;
  if (buffer == nullptr && size == 0) return strdup(shown);
  if (size < needed) {
    errno = buffer != nullptr && size == 0 ? EINVAL : ERANGE;
    return nullptr;
  }
  if (buffer == nullptr) buffer = static_cast<char*>(malloc(size));
  if (buffer != nullptr) memcpy(buffer, shown, needed);
  return buffer;
}

bool is_in_tree(char (&path)[kPathSize]) {
  return (is_tree_in_use() || detail::began_in_tree(AT_FDCWD)) && shown_path_of(AT_FDCWD, path);
}

}  // namespace

DAPPLE_WRAPPER(readlink, ssize_t wrapped_readlink(const char* path, char* buffer, size_t size)) {
  return link_by_path(AT_FDCWD, path, buffer, size,
                      [&](char* to, size_t room) { return NEXT(readlink)(path, to, room); });
}
DAPPLE_WRAPPER(readlinkat, ssize_t wrapped_readlinkat(int folder, const char* path, char* buffer, size_t size)) {
  return link_by_path(folder, path, buffer, size,
                      [&](char* to, size_t room) { return NEXT(readlinkat)(folder, path, to, room); });
}
DAPPLE_WRAPPER(__readlink_chk, ssize_t wrapped_readlink_chk(const char* path, char* buffer, size_t size, size_t room)) {
  if (size > room) stop_overflow();
  return wrapped_readlink(path, buffer, size);
}
DAPPLE_WRAPPER(__readlinkat_chk,
               ssize_t wrapped_readlinkat_chk(int folder, const char* path, char* buffer, size_t size, size_t room)) {
  if (size > room) stop_overflow();
  return wrapped_readlinkat(folder, path, buffer, size);
}

DAPPLE_WRAPPER(realpath, char* wrapped_realpath(const char* path, char* resolved)) {
  return call_by_path(
      AT_FDCWD, path, true, [&] { return show_result(NEXT(realpath)(path, resolved)); },
      [&](const ResolvedPath& at) { return path_of_resolved(at, resolved); });
}
DAPPLE_WRAPPER(__realpath_chk, char* wrapped_realpath_chk(const char* path, char* resolved, size_t room)) {
  if (room < PATH_MAX) stop_overflow();
  return wrapped_realpath(path, resolved);
}
DAPPLE_WRAPPER(canonicalize_file_name, char* wrapped_canonicalize_file_name(const char* path)) {
  return wrapped_realpath(path, nullptr);
}

DAPPLE_WRAPPER(chdir, int wrapped_chdir(const char* path)) {
  return call_by_path(
      AT_FDCWD, path, true, [&] { return NEXT(chdir)(path); }, change_to_resolved);
}

DAPPLE_WRAPPER(getcwd, char* wrapped_getcwd(char* buffer, size_t size)) {
  char path[kPathSize];
  return is_in_tree(path) ? folder_in_tree(path, buffer, size) : NEXT(getcwd)(buffer, size);
}
DAPPLE_WRAPPER(__getcwd_chk, char* wrapped_getcwd_chk(char* buffer, size_t size, size_t room)) {
  if (size > room) stop_overflow();
  return wrapped_getcwd(buffer, size);
}

// The C library prefers PWD, but it compares PWD with the real folder.
DAPPLE_WRAPPER(get_current_dir_name, char* wrapped_get_current_dir_name()) {
  char path[kPathSize];
  if (!is_in_tree(path)) return NEXT(get_current_dir_name)();
  struct stat here;
  struct stat named;
  const char* pwd = getenv("PWD");
  if (pwd != nullptr && pwd[0] == '/' && stat(".", &here) == 0 && stat(pwd, &named) == 0 &&
      here.st_dev == named.st_dev && here.st_ino == named.st_ino) {
    return strdup(pwd);
  }
  return strdup(path);
}

DAPPLE_WRAPPER(getwd, char* wrapped_getwd(char* buffer)) {
  char path[PATH_MAX];
  if (wrapped_getcwd(path, sizeof path) == nullptr) {
    strerror_r(errno, buffer, PATH_MAX);
    return nullptr;
  }
  return strcpy(buffer, path);
}
DAPPLE_WRAPPER(__getwd_chk, char* wrapped_getwd_chk(char* buffer, size_t room)) {
  char path[PATH_MAX];
  if (wrapped_getcwd(path, sizeof path) != nullptr && strlen(path) >= room) stop_overflow();
  return wrapped_getwd(buffer);
}

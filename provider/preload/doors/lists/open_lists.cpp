// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that open a folder to list it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "provider/preload/doors/listing.hpp"
#include "provider/preload/doors/lists/driver_folder.hpp"
#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/shared_folder.hpp"
#include "provider/preload/doors/paths/tree_file.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

extern "C" {
DIR* wrapped_opendir(const char* path) __asm__("opendir");
int wrapped_stat(const char* path, struct stat* status) __asm__("stat");
int wrapped_lstat(const char* path, struct stat* status) __asm__("lstat");
}

namespace {

static_assert(sizeof(dirent) == sizeof(dirent64) && sizeof(glob_t) == sizeof(glob64_t));

DIR* noted(DIR* folder, const char* path) {
  if (folder != nullptr) note_shared_folder(dirfd(folder), path);
  return folder;
}

DIR* open_folder(const ResolvedPath& at) {
  const int fd = open_resolved(at, O_RDONLY | O_NDELAY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  DIR* const folder = fdopendir(fd);
  if (folder == nullptr) real.close(fd);
  return folder;
}

using Filter = int (*)(const dirent*);
using Order = int (*)(const dirent**, const dirent**);

// The C library's own functions do not see the entries of a shared folder that the tree adds.
int list_stream(DIR* stream, dirent*** names, Filter filter, Order order) {
  dirent** list = nullptr;
  size_t count = 0, room = 0;
  const int before = errno;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream);
    if (entry == nullptr) break;
    if (filter != nullptr && filter(entry) == 0) continue;
    if (count == room) {
      void* const larger = realloc(list, (room = 2 * room + 16) * sizeof *list);
      if (larger == nullptr) break;
      list = static_cast<dirent**>(larger);
    }
    void* const copy = malloc(entry->d_reclen);
    if (copy == nullptr) break;
    list[count++] = static_cast<dirent*>(memcpy(copy, entry, entry->d_reclen));
  }
  // Of readdir(), or ENOMEM.
  if (const int error = errno; error != 0) {
    while (count > 0) free(list[--count]);
    free(list);
    errno = error;
    return -1;
  }
  errno = before;
  if (order != nullptr && count > 0) {
    const auto compare = [](const void* left, const void* right, void* how) {
      return (*static_cast<Order*>(how))(static_cast<const dirent**>(const_cast<void*>(left)),
                                         static_cast<const dirent**>(const_cast<void*>(right)));
    };
    qsort_r(list, count, sizeof *list, compare, &order);
  }
  *names = list;
  return static_cast<int>(count);
}

// A folder of the kernel, as scandirat().
int list_shared(int folder, const char* path, dirent*** names, Filter filter, Order order) {
  const int fd = real.openat(folder, path, O_RDONLY | O_NDELAY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = fd < 0 ? nullptr : noted(fdopendir(fd), path);
  if (stream == nullptr) {
    if (fd >= 0) real.close(fd);
    return -1;
  }
  const int count = list_stream(stream, names, filter, order);
  const int error = errno;
  closedir(stream);
  errno = error;
  return count;
}

// As scandirat().
template <class Kernel>
int list(int folder, const char* path, dirent*** names, Filter filter, Order order, Kernel kernel) {
  return call_by_path(folder, path, true, kernel, [&](const ResolvedPath& at) {
    if (at.where == ResolvedPath::Where::kKernel) {
      if (may_be_shared(at.walked.path)) return list_shared(AT_FDCWD, at.walked.path, names, filter, order);
      return NEXT(scandirat)(AT_FDCWD, at.walked.path, names, filter, order);
    }
    const int fd = open_resolved(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int count = NEXT(scandirat)(fd, ".", names, filter, order);
    const int error = errno;
    real.close(fd);
    errno = error;
    return count;
  });
}

// glob() with the functions of this library, which find the tree.
int glob_in_tree(const char* pattern, int flags, int (*error)(const char*, int), glob_t* found) {
  const auto before = *found;
  found->gl_opendir = [](const char* path) -> void* { return wrapped_opendir(path); };
  found->gl_readdir = [](void* folder) { return readdir(static_cast<DIR*>(folder)); };
  found->gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
  found->gl_stat = wrapped_stat;
  found->gl_lstat = wrapped_lstat;
  const int result = NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, error, found);
  found->gl_opendir = before.gl_opendir;
  found->gl_readdir = before.gl_readdir;
  found->gl_closedir = before.gl_closedir;
  found->gl_stat = before.gl_stat;
  found->gl_lstat = before.gl_lstat;
  found->gl_flags &= ~GLOB_ALTDIRFUNC;
  return result;
}

}  // namespace

DAPPLE_WRAPPER(opendir, DIR* wrapped_opendir(const char* path)) {
  if (lists_devices(path)) listing_begins();
  DIR* const folder = call_by_path(
      AT_FDCWD, path, true, [&] { return noted(real.opendir(path), path); }, open_folder);
  return folder != nullptr || errno != ENOENT ? folder : driver_folder(path);
}

DAPPLE_WRAPPER(scandir, int wrapped_scandir(const char* path, dirent*** names, Filter filter, Order order)) {
  return list(AT_FDCWD, path, names, filter, order, [&] {
    return may_be_shared(path) ? list_shared(AT_FDCWD, path, names, filter, order)
                               : NEXT(scandir)(path, names, filter, order);
  });
}
DAPPLE_WRAPPER(scandirat,
               int wrapped_scandirat(int folder, const char* path, dirent*** names, Filter filter, Order order)) {
  return list(folder, path, names, filter, order, [&] {
    return may_be_shared(path) ? list_shared(folder, path, names, filter, order)
                               : NEXT(scandirat)(folder, path, names, filter, order);
  });
}
DAPPLE_WRAPPER_ALIAS(scandir64, scandir,
                     int wrapped_scandir64(const char* path, dirent*** names, Filter filter, Order order));
DAPPLE_WRAPPER_ALIAS(scandirat64, scandirat,
                     int wrapped_scandirat64(int folder, const char* path, dirent*** names, Filter filter,
                                             Order order));

// A pattern may contain wildcards before the name of a folder of ours, so the first characters decide.
DAPPLE_WRAPPER(glob, int wrapped_glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* found)) {
  const bool may_match =
      pattern != nullptr && (strncmp(pattern, "/sys/", 5) == 0 || strncmp(pattern, "/dev/", 5) == 0 ||
                             pattern[0] == '{' || may_lead_to_tree(AT_FDCWD, pattern));
  if (may_match && (flags & GLOB_ALTDIRFUNC) == 0) return glob_in_tree(pattern, flags, error, found);
  return NEXT(glob)(pattern, flags, error, found);
}
DAPPLE_WRAPPER_ALIAS(glob64, glob,
                     int wrapped_glob64(const char* pattern, int flags, int (*error)(const char*, int), glob_t* found));

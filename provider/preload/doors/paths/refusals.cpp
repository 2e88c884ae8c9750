// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that change the file system, which the tree refuses as sysfs does, also by a path relative to a folder
// in it: the real files belong to the program's user. And those that ask about extended attributes.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/resolved_path.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

// 1 if the path does not lead into the tree; else -1 with errno.
int refusal(int folder, const char* path, int error, bool follow = false) {
  if (!may_lead_to_tree(folder, path)) return 1;
  const int before = errno;
  const ResolvedPath at(folder, path, follow, false);
  if (at.where != ResolvedPath::Where::kTree) {
    errno = before;
    return 1;
  }
  return refuse(error);
}

int refusal(int fd) {
  char path[kPathSize];
  return lies_in_tree(fd, path) ? refuse(EPERM) : 1;
}

template <class Kernel>
int refuse_by_path(int folder, const char* path, int error, bool follow, Kernel kernel) {
  return refusal(folder, path, error, follow) < 0 ? -1 : kernel();
}

// Links and names get a second path.
template <class Kernel>
int refuse_by_paths(int folder, const char* path, int other_folder, const char* other, int error, Kernel kernel) {
  return refusal(folder, path, error) < 0 || refusal(other_folder, other, error) < 0 ? -1 : kernel();
}

template <class Kernel>
ssize_t attributes_by_path(const char* path, bool follow, ssize_t in_tree, Kernel kernel) {
  return call_by_path(AT_FDCWD, path, follow, kernel, [&](const ResolvedPath& at) -> ssize_t {
    if (at.where == ResolvedPath::Where::kFailed) return -1;
    if (at.file.target == Target::kMissing) return refuse(ENOENT);
    if (in_tree < 0) errno = ENOTSUP;
    return in_tree;
  });
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): declarations and calls
// NAME(PATH, ...): a function with one path, which is relative to the working directory.
#define DAPPLE_REFUSAL(name, error, follow, parameters, arguments)                              \
  DAPPLE_WRAPPER(name, int wrapped_##name parameters) {                                         \
    return refuse_by_path(AT_FDCWD, path, error, follow, [&] { return NEXT(name) arguments; }); \
  }
// The same for one that is relative to a folder.
#define DAPPLE_REFUSAL_AT(name, error, follow, parameters, arguments)                         \
  DAPPLE_WRAPPER(name, int wrapped_##name parameters) {                                       \
    return refuse_by_path(folder, path, error, follow, [&] { return NEXT(name) arguments; }); \
  }
// NOLINTEND(bugprone-macro-parentheses)

DAPPLE_REFUSAL(unlink, EPERM, false, (const char* path), (path))
DAPPLE_REFUSAL(rmdir, EPERM, false, (const char* path), (path))
DAPPLE_REFUSAL(remove, EPERM, false, (const char* path), (path))
DAPPLE_REFUSAL(mkdir, EPERM, false, (const char* path, mode_t mode), (path, mode))
DAPPLE_REFUSAL(mkfifo, EPERM, false, (const char* path, mode_t mode), (path, mode))
DAPPLE_REFUSAL(mknod, EPERM, false, (const char* path, mode_t mode, dev_t device), (path, mode, device))
DAPPLE_REFUSAL(truncate, EACCES, true, (const char* path, off_t size), (path, size))
DAPPLE_REFUSAL(chmod, EPERM, true, (const char* path, mode_t mode), (path, mode))
DAPPLE_REFUSAL(lchmod, EPERM, false, (const char* path, mode_t mode), (path, mode))
DAPPLE_REFUSAL(chown, EPERM, true, (const char* path, uid_t user, gid_t group), (path, user, group))
DAPPLE_REFUSAL(lchown, EPERM, false, (const char* path, uid_t user, gid_t group), (path, user, group))
DAPPLE_REFUSAL(utime, EPERM, true, (const char* path, const utimbuf* times), (path, times))
DAPPLE_REFUSAL(utimes, EPERM, true, (const char* path, const timeval* times), (path, times))
DAPPLE_REFUSAL(lutimes, EPERM, false, (const char* path, const timeval* times), (path, times))
DAPPLE_REFUSAL(setxattr, EPERM, true, (const char* path, const char* name, const void* value, size_t size, int flags),
               (path, name, value, size, flags))
DAPPLE_REFUSAL(lsetxattr, EPERM, false, (const char* path, const char* name, const void* value, size_t size, int flags),
               (path, name, value, size, flags))
DAPPLE_REFUSAL(removexattr, EPERM, true, (const char* path, const char* name), (path, name))
DAPPLE_REFUSAL(lremovexattr, EPERM, false, (const char* path, const char* name), (path, name))

DAPPLE_REFUSAL_AT(unlinkat, EPERM, false, (int folder, const char* path, int flags), (folder, path, flags))
DAPPLE_REFUSAL_AT(mkdirat, EPERM, false, (int folder, const char* path, mode_t mode), (folder, path, mode))
DAPPLE_REFUSAL_AT(mkfifoat, EPERM, false, (int folder, const char* path, mode_t mode), (folder, path, mode))
DAPPLE_REFUSAL_AT(mknodat, EPERM, false, (int folder, const char* path, mode_t mode, dev_t device),
                  (folder, path, mode, device))
DAPPLE_REFUSAL_AT(fchmodat, EPERM, true, (int folder, const char* path, mode_t mode, int flags),
                  (folder, path, mode, flags))
DAPPLE_REFUSAL_AT(fchownat, EPERM, (flags & AT_SYMLINK_NOFOLLOW) == 0,
                  (int folder, const char* path, uid_t user, gid_t group, int flags),
                  (folder, path, user, group, flags))
DAPPLE_REFUSAL_AT(utimensat, EPERM, (flags & AT_SYMLINK_NOFOLLOW) == 0,
                  (int folder, const char* path, const timespec times[2], int flags), (folder, path, times, flags))

// An open file.
DAPPLE_WRAPPER(fchmod, int wrapped_fchmod(int fd, mode_t mode)) {
  return refusal(fd) < 0 ? -1 : NEXT(fchmod)(fd, mode);
}
DAPPLE_WRAPPER(fchown, int wrapped_fchown(int fd, uid_t user, gid_t group)) {
  return refusal(fd) < 0 ? -1 : NEXT(fchown)(fd, user, group);
}
DAPPLE_WRAPPER(futimens, int wrapped_futimens(int fd, const timespec times[2])) {
  return refusal(fd) < 0 ? -1 : NEXT(futimens)(fd, times);
}

DAPPLE_WRAPPER_ALIAS(truncate64, truncate, int wrapped_truncate64(const char* path, off_t size));

DAPPLE_WRAPPER(rename, int wrapped_rename(const char* from, const char* to)) {
  return refuse_by_paths(AT_FDCWD, from, AT_FDCWD, to, EPERM, [&] { return NEXT(rename)(from, to); });
}
DAPPLE_WRAPPER(renameat, int wrapped_renameat(int from_folder, const char* from, int to_folder, const char* to)) {
  return refuse_by_paths(from_folder, from, to_folder, to, EPERM,
                         [&] { return NEXT(renameat)(from_folder, from, to_folder, to); });
}
DAPPLE_WRAPPER(renameat2, int wrapped_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                                                unsigned flags)) {
  return refuse_by_paths(from_folder, from, to_folder, to, EPERM,
                         [&] { return NEXT(renameat2)(from_folder, from, to_folder, to, flags); });
}
DAPPLE_WRAPPER(link, int wrapped_link(const char* from, const char* to)) {
  return refuse_by_paths(AT_FDCWD, from, AT_FDCWD, to, EPERM, [&] { return NEXT(link)(from, to); });
}
DAPPLE_WRAPPER(linkat,
               int wrapped_linkat(int from_folder, const char* from, int to_folder, const char* to, int flags)) {
  return refuse_by_paths(from_folder, from, to_folder, to, EPERM,
                         [&] { return NEXT(linkat)(from_folder, from, to_folder, to, flags); });
}
DAPPLE_WRAPPER(symlink, int wrapped_symlink(const char* target, const char* path)) {
  return refuse_by_path(AT_FDCWD, path, EPERM, false, [&] { return NEXT(symlink)(target, path); });
}
DAPPLE_WRAPPER(symlinkat, int wrapped_symlinkat(const char* target, int folder, const char* path)) {
  return refuse_by_path(folder, path, EPERM, false, [&] { return NEXT(symlinkat)(target, folder, path); });
}

DAPPLE_WRAPPER(getxattr, ssize_t wrapped_getxattr(const char* path, const char* name, void* value, size_t size)) {
  return attributes_by_path(path, true, -1, [&] { return NEXT(getxattr)(path, name, value, size); });
}
DAPPLE_WRAPPER(lgetxattr, ssize_t wrapped_lgetxattr(const char* path, const char* name, void* value, size_t size)) {
  return attributes_by_path(path, false, -1, [&] { return NEXT(lgetxattr)(path, name, value, size); });
}
DAPPLE_WRAPPER(listxattr, ssize_t wrapped_listxattr(const char* path, char* names, size_t size)) {
  return attributes_by_path(path, true, 0, [&] { return NEXT(listxattr)(path, names, size); });
}
DAPPLE_WRAPPER(llistxattr, ssize_t wrapped_llistxattr(const char* path, char* names, size_t size)) {
  return attributes_by_path(path, false, 0, [&] { return NEXT(llistxattr)(path, names, size); });
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that ask what a process may do with a file.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/resolved_path.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

int access_of_door(const File& file, int mode) {
  if (file.target == Target::kMissing) return refuse(ENOENT);
  return (mode & X_OK) != 0 ? refuse(EACCES) : 0;
}

// Of any place but kOther.
int access_of_resolved(const ResolvedPath& at, int mode, int flags) {
  switch (at.where) {
    case ResolvedPath::Where::kDoor:
      return access_of_door(at.file, mode);
    case ResolvedPath::Where::kTree:
      if (real.faccessat(at.root, at.walked.below(), mode & ~W_OK, flags) != 0) return -1;
      // The kernel refuses it even to root when the file is opened.
      return (mode & W_OK) != 0 && at.walked.type != S_IFLNK ? refuse(EACCES) : 0;
    case ResolvedPath::Where::kKernel:
      return real.faccessat(AT_FDCWD, at.walked.path, mode, flags);
    default:
      return -1;
  }
}

template <class Kernel>
int access_by_path(int folder, const char* path, int mode, int flags, Kernel kernel) {
  if (maybe_ours(path)) {
    const File file = look_up(path);
    if (file.target != Target::kOther) return access_of_door(file, mode);
  }
  return call_by_path(folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, kernel,
                      [&](const ResolvedPath& at) { return access_of_resolved(at, mode, flags); });
}

}  // namespace

DAPPLE_WRAPPER(access, int wrapped_access(const char* path, int mode)) {
  return access_by_path(AT_FDCWD, path, mode, 0, [&] { return real.access(path, mode); });
}

DAPPLE_WRAPPER(faccessat, int wrapped_faccessat(int folder, const char* path, int mode, int flags)) {
  return access_by_path(folder, path, mode, flags, [&] { return real.faccessat(folder, path, mode, flags); });
}

DAPPLE_WRAPPER(euidaccess, int wrapped_euidaccess(const char* path, int mode)) {
  return access_by_path(AT_FDCWD, path, mode, AT_EACCESS, [&] { return NEXT(euidaccess)(path, mode); });
}
DAPPLE_WRAPPER_ALIAS(eaccess, euidaccess, int wrapped_eaccess(const char* path, int mode));

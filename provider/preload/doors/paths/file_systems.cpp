// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that ask about file systems. The tree says that it is on the kernel's: libudev takes no other for /sys.
#include <fcntl.h>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/resolved_path.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

const char* file_system_of(const char* shown) {
  return shown[1] == 'd' ? "/dev" : "/sys";
}

// call(path), with another path for one that leads to the tree.
template <class Call>
auto ask_by_path(const char* path, Call call) {
  return call_by_path(
      AT_FDCWD, path, true, [&] { return call(path); },
      [&](const ResolvedPath& at) -> decltype(call(path)) {
        if (at.where == ResolvedPath::Where::kFailed) return -1;
        return call(at.where == ResolvedPath::Where::kKernel ? at.walked.path : file_system_of(at.walked.path));
      });
}

}  // namespace

DAPPLE_WRAPPER(statfs, int wrapped_statfs(const char* path, struct statfs* status)) {
  return ask_by_path(path, [&](const char* asked) { return NEXT(statfs)(asked, status); });
}
DAPPLE_WRAPPER(statvfs, int wrapped_statvfs(const char* path, struct statvfs* status)) {
  return ask_by_path(path, [&](const char* asked) { return NEXT(statvfs)(asked, status); });
}
DAPPLE_WRAPPER(pathconf, long wrapped_pathconf(const char* path, int name)) {
  return ask_by_path(path, [&](const char* asked) { return NEXT(pathconf)(asked, name); });
}
DAPPLE_WRAPPER(fstatfs, int wrapped_fstatfs(int fd, struct statfs* status)) {
  char path[kPathSize];
  return lies_in_tree(fd, path) ? NEXT(statfs)(file_system_of(path), status) : NEXT(fstatfs)(fd, status);
}
DAPPLE_WRAPPER(fstatvfs, int wrapped_fstatvfs(int fd, struct statvfs* status)) {
  char path[kPathSize];
  return lies_in_tree(fd, path) ? NEXT(statvfs)(file_system_of(path), status) : NEXT(fstatvfs)(fd, status);
}

DAPPLE_WRAPPER_ALIAS(statfs64, statfs, int wrapped_statfs64(const char* path, struct statfs* status));
DAPPLE_WRAPPER_ALIAS(statvfs64, statvfs, int wrapped_statvfs64(const char* path, struct statvfs* status));
DAPPLE_WRAPPER_ALIAS(fstatfs64, fstatfs, int wrapped_fstatfs64(int fd, struct statfs* status));
DAPPLE_WRAPPER_ALIAS(fstatvfs64, fstatvfs, int wrapped_fstatvfs64(int fd, struct statvfs* status));

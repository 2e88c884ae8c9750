// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/tree_file.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <cassert>

#include "provider/preload/doors/paths/shared_folder.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace {

constexpr off_t kSysfsSize = 4096;

int refuse(int error) {
  errno = error;
  return -1;
}

// The files that dappled writes when somebody asks.
bool is_live(const char* path) {
  return strstr(path, "/ports/") != nullptr || strstr(path, "/hw_counters/") != nullptr;
}

int tracked(int fd, Kind kind) {
  // In a child of vfork() the table is the parent's. A file without an entry only shows its real owner and size.
  if (fd >= 0 && owns_table()) track(fd, {.kind = kind});
  return fd;
}

}  // namespace

int open_in_tree(const ResolvedPath& at, int flags) {
  assert(at.where == ResolvedPath::Where::kTree && at.root >= 0);
  const bool there = at.walked.type != 0;
  const bool is_folder = at.walked.type == S_IFDIR;
  if ((flags & O_PATH) != 0) return real.openat(at.root, at.walked.below(), flags);
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0 && there) return refuse(EEXIST);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  if (!there) return refuse((flags & O_CREAT) != 0 ? EACCES : ENOENT);
  if (is_folder && (writes || (flags & O_CREAT) != 0)) return refuse(EISDIR);
  if (writes) return refuse(EACCES);
  flags &= ~O_CREAT;
  if (at.walked.type != S_IFREG) return real.openat(at.root, at.walked.below(), flags);
  if (is_live(at.walked.path) && (flags & O_DIRECTORY) == 0 && refresh(at.walked.below())) {
    return tracked(epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0), Kind::kEmptyEntry);
  }
  return tracked(real.openat(at.root, at.walked.below(), flags), Kind::kTreeFile);
}

void renew_tree_file(int fd) {
  const int error = errno;
  char path[kPathSize];
  // In a child of vfork() the table is the parent's.
  const bool known = owns_table() && shown_path_of(fd, path) && is_live(path);
  const int root = known ? tree_root() : -1;
  const int flags = root < 0 ? -1 : real.fcntl(fd, F_GETFL);
  const int close_on_exec = flags < 0 ? -1 : real.fcntl(fd, F_GETFD);
  if (close_on_exec >= 0) {
    const bool fails = refresh(path + 1);
    const int next = fails ? epoll_create1(EPOLL_CLOEXEC) : real.openat(root, path + 1, flags | O_CLOEXEC);
    // A device that has gone leaves its last value.
    if (next >= 0 && real.dup3(next, fd, (close_on_exec & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) == fd) {
      track(fd, {.kind = fails ? Kind::kEmptyEntry : Kind::kTreeFile});
    }
    if (next >= 0) real.close(next);
  }
  errno = error;
}

int open_resolved(const ResolvedPath& at, int flags, mode_t mode) {
  switch (at.where) {
    case ResolvedPath::Where::kDoor:
      return open_file(at.file, flags);
    case ResolvedPath::Where::kTree:
      return open_in_tree(at, flags);
    case ResolvedPath::Where::kKernel:
      return opened_folder(real.open(at.walked.path, flags, mode), at.walked.path, flags);
    default:
      return -1;
  }
}

void present(struct stat& status) {
  status.st_uid = 0;
  status.st_gid = 0;
  status.st_blocks = 0;
  if (S_ISREG(status.st_mode)) status.st_size = kSysfsSize;
  if (S_ISDIR(status.st_mode)) status.st_size = 0;
}

}  // namespace dapple::doors

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that ask for a file's status, by name or by descriptor. On 64-bit machines struct stat64 is struct
// stat.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "provider/preload/doors/files.hpp"
#include "provider/preload/doors/listing.hpp"
#include "provider/preload/doors/paths/tree_file.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/wrapper.hpp"
#include "provider/system/uverbs_file.hpp"

using namespace dapple::doors;

static_assert(sizeof(struct stat) == sizeof(struct stat64));

namespace {

struct stat status_of(const File& file) {
  struct stat status = {};
  status.st_nlink = 1;
  status.st_blksize = 4096;
  if (file.target == Target::kUverbs) {
    status.st_mode = S_IFCHR | 0666;
    status.st_rdev = device_number(file.device);
    status.st_ino = file.device;
  } else if (file.target == Target::kRdmaCm) {
    status.st_mode = S_IFCHR | 0666;
    status.st_rdev = rdma_cm_number();
  } else {
    status.st_mode = S_IFREG | 0444;
    status.st_size = static_cast<off_t>(strlen(file.text));
  }
  return status;
}

// 0 or -1 for a path of ours; 1 if it is not.
[[gnu::noinline]] int status_of_ours(const char* path, struct stat* status) {
  const File file = look_up(path);
  // The tree has the status of a device's file.
  const bool is_of_tree = file.target == Target::kText && strcmp(path, kRdmaCmAbiPath) != 0;
  if (file.target == Target::kOther || is_of_tree) return 1;
  if (file.target == Target::kMissing) {
    errno = ENOENT;
    return -1;
  }
  if (file.target == Target::kUverbs) device_file_seen();
  *status = status_of(file);
  return 0;
}

// Gives a door's descriptor the status of an open character device, or of a file of sysfs.
[[gnu::noinline]] void disguise(int fd, struct stat* status) {
  Door door;
  if (!find(fd, door)) return;
  switch (door.kind) {
    case Kind::kUverbs:
    case Kind::kRdmaCm:
      status->st_mode = S_IFCHR | 0666;
      status->st_rdev = door.kind == Kind::kUverbs ? device_number(door.device) : rdma_cm_number();
      status->st_size = 0;
      return;
    case Kind::kEmptyEntry:
      status->st_mode = S_IFREG | 0444;
      [[fallthrough]];
    case Kind::kTreeFile:
      present(*status);
      return;
    default:
      return;
  }
}

// A descriptor of an open device that has come from another process, or by a way that the doors do not see.
bool may_have_come(const struct stat& status) {
  return status.st_nlink == 0 && status.st_size == dapple::soft::UverbsFile::kSize && S_ISREG(status.st_mode);
}

int fstat_of(int fd, struct stat* status, int result) {
  if (result != 0) return result;
  if (maybe_ours(fd) || (may_have_come(*status) && adopt_uverbs(fd))) disguise(fd, status);
  return result;
}

// The status of any place but kOther.
int status_of_resolved(const ResolvedPath& at, struct stat* status, bool follow) {
  switch (at.where) {
    case ResolvedPath::Where::kDoor:
      if (at.file.target == Target::kMissing) break;
      *status = status_of(at.file);
      return 0;
    case ResolvedPath::Where::kTree:
      if (real.fstatat(at.root, at.walked.below(), status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
      present(*status);
      return 0;
    case ResolvedPath::Where::kKernel:
      return real.fstatat(AT_FDCWD, at.walked.path, status, follow ? 0 : AT_SYMLINK_NOFOLLOW);
    default:
      return -1;
  }
  errno = ENOENT;
  return -1;
}

template <class Kernel>
int status_by_path(int folder, const char* path, struct stat* status, bool follow, Kernel kernel) {
  if (maybe_ours(path)) {
    if (const int result = status_of_ours(path, status); result <= 0) return result;
  }
  return call_by_path(folder, path, follow, kernel,
                      [&](const ResolvedPath& at) { return status_of_resolved(at, status, follow); });
}

bool follows(int flags) {
  return (flags & AT_SYMLINK_NOFOLLOW) == 0;
}

void fill(struct statx* to, const struct stat& from) {
  *to = {};
  to->stx_mask = STATX_BASIC_STATS;
  to->stx_mode = static_cast<uint16_t>(from.st_mode);
  to->stx_nlink = 1;
  to->stx_blksize = 4096;
  to->stx_ino = from.st_ino;
  to->stx_size = static_cast<uint64_t>(from.st_size);
  to->stx_rdev_major = major(from.st_rdev);
  to->stx_rdev_minor = minor(from.st_rdev);
}

void present_statx(struct statx& status) {
  struct stat plain = {};
  plain.st_mode = status.stx_mode;
  plain.st_size = static_cast<off_t>(status.stx_size);
  present(plain);
  status.stx_uid = plain.st_uid;
  status.stx_gid = plain.st_gid;
  status.stx_blocks = 0;
  status.stx_size = static_cast<uint64_t>(plain.st_size);
}

void disguise_statx(int fd, struct statx* status) {
  Door door;
  if (!find(fd, door)) return;
  if (door.kind == Kind::kEmptyEntry) status->stx_mode = S_IFREG | 0444;
  if (door.kind == Kind::kTreeFile || door.kind == Kind::kEmptyEntry) return present_statx(*status);
  struct stat plain = {};
  disguise(fd, &plain);
  if (plain.st_mode != 0) fill(status, plain);
}

// The status of any place but kOther.
int statx_of_resolved(const ResolvedPath& at, int flags, unsigned mask, struct statx* status) {
  struct stat plain;
  switch (at.where) {
    case ResolvedPath::Where::kTree:
      if (real.statx(at.root, at.walked.below(), (flags & AT_STATX_SYNC_TYPE) | AT_SYMLINK_NOFOLLOW, mask, status) !=
          0) {
        return -1;
      }
      present_statx(*status);
      return 0;
    case ResolvedPath::Where::kKernel:
      return real.statx(AT_FDCWD, at.walked.path, flags, mask, status);
    default:
      if (status_of_resolved(at, &plain, true) != 0) return -1;
      fill(status, plain);
      return 0;
  }
}

}  // namespace

DAPPLE_WRAPPER(stat, int wrapped_stat(const char* path, struct stat* status)) {
  return status_by_path(AT_FDCWD, path, status, true, [&] { return real.stat(path, status); });
}

DAPPLE_WRAPPER(lstat, int wrapped_lstat(const char* path, struct stat* status)) {
  return status_by_path(AT_FDCWD, path, status, false, [&] { return real.lstat(path, status); });
}

DAPPLE_WRAPPER(fstat, int wrapped_fstat(int fd, struct stat* status)) {
  return fstat_of(fd, status, real.fstat(fd, status));
}

DAPPLE_WRAPPER(fstatat, int wrapped_fstatat(int folder, const char* path, struct stat* status, int flags)) {
  const int result =
      status_by_path(folder, path, status, follows(flags), [&] { return real.fstatat(folder, path, status, flags); });
  if ((flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0')) return fstat_of(folder, status, result);
  return result;
}

DAPPLE_WRAPPER_ALIAS(stat64, stat, int wrapped_stat64(const char* path, struct stat* status));
DAPPLE_WRAPPER_ALIAS(lstat64, lstat, int wrapped_lstat64(const char* path, struct stat* status));
DAPPLE_WRAPPER_ALIAS(fstat64, fstat, int wrapped_fstat64(int fd, struct stat* status));
DAPPLE_WRAPPER_ALIAS(fstatat64, fstatat,
                     int wrapped_fstatat64(int folder, const char* path, struct stat* status, int flags));

// Programs that were built before glibc 2.33 call these.
DAPPLE_WRAPPER(__xstat, int wrapped_xstat(int version, const char* path, struct stat* status)) {
  return status_by_path(AT_FDCWD, path, status, true, [&] { return real.xstat(version, path, status); });
}

DAPPLE_WRAPPER(__lxstat, int wrapped_lxstat(int version, const char* path, struct stat* status)) {
  return status_by_path(AT_FDCWD, path, status, false, [&] { return real.lxstat(version, path, status); });
}

DAPPLE_WRAPPER(__fxstat, int wrapped_fxstat(int version, int fd, struct stat* status)) {
  return fstat_of(fd, status, real.fxstat(version, fd, status));
}

DAPPLE_WRAPPER(__fxstatat,
               int wrapped_fxstatat(int version, int folder, const char* path, struct stat* status, int flags)) {
  return status_by_path(folder, path, status, follows(flags),
                        [&] { return real.fxstatat(version, folder, path, status, flags); });
}

DAPPLE_WRAPPER_ALIAS(__xstat64, __xstat, int wrapped_xstat64(int version, const char* path, struct stat* status));
DAPPLE_WRAPPER_ALIAS(__lxstat64, __lxstat, int wrapped_lxstat64(int version, const char* path, struct stat* status));
DAPPLE_WRAPPER_ALIAS(__fxstat64, __fxstat, int wrapped_fxstat64(int version, int fd, struct stat* status));
DAPPLE_WRAPPER_ALIAS(__fxstatat64, __fxstatat,
                     int wrapped_fxstatat64(int version, int folder, const char* path, struct stat* status, int flags));

DAPPLE_WRAPPER(statx, int wrapped_statx(int folder, const char* path, int flags, unsigned mask, struct statx* status)) {
  struct stat plain;
  if (maybe_ours(path)) {
    const int result = status_of_ours(path, &plain);
    if (result == 0) fill(status, plain);
    if (result <= 0) return result;
  }
  const int result = call_by_path(
      folder, path, follows(flags), [&] { return real.statx(folder, path, flags, mask, status); },
      [&](const ResolvedPath& at) { return statx_of_resolved(at, flags, mask, status); });
  if (result == 0 && (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0') && maybe_ours(folder)) {
    disguise_statx(folder, status);
  }
  return result;
}

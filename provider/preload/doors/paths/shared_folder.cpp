// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/shared_folder.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>

#include "provider/preload/doors/paths/root.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace {

constexpr const char* kShared[] = {
    "/dev", "/sys/class", "/sys/devices", "/sys/devices/virtual", "/sys/bus/pci/devices", "/sys/bus/pci/drivers"};

class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = saved_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int saved_ = errno;
};

// Null for any other folder.
const char* shared_path(int fd) {
  char link[32], path[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  for (const char* shared : kShared) {
    if (size == static_cast<long>(strlen(shared)) && memcmp(path, shared, static_cast<size_t>(size)) == 0)
      return shared;
  }
  return nullptr;
}

// The tree's folder, whose offset is the place in the list; -1 if the tree lacks it.
int tree_folder(int fd) {
  const char* path = shared_path(fd);
  const int root = path == nullptr ? -1 : tree_root();
  if (root < 0) return -1;
  const int folder = static_cast<int>(syscall(SYS_openat, root, path + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0) return -1;
  const int hidden = hide(folder);
  if (track(fd, {.kind = Kind::kSharedFolder, .attached = {hidden, -1}})) return hidden;
  close_hidden(hidden);
  return -1;
}

bool is_there(int folder, const char* name) {
  struct stat status;
  return syscall(SYS_newfstatat, folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

void note_shared_folder(int fd, const char* path) {
  if (fd < 0 || !may_be_shared(path)) return;
  const KeptErrno kept;
  if (owns_table() && shared_path(fd) != nullptr) track(fd, {.kind = Kind::kSharedFolder});
}

bool next_shared_entry(int fd, dirent64& entry) {
  const KeptErrno kept;
  Door door;
  if (!find(fd, Kind::kSharedFolder, door) || !owns_table()) return false;
  const int list = door.attached[0] >= 0 ? door.attached[0] : tree_folder(fd);
  if (list < 0) return false;
  // As many as find room come at once, and all but the first one come again.
  while (syscall(SYS_getdents64, list, &entry, sizeof entry) > 0) {
    assert(entry.d_reclen <= sizeof entry);
    if (lseek(list, entry.d_off, SEEK_SET) < 0) return false;
    const bool is_dots = strcmp(entry.d_name, ".") == 0 || strcmp(entry.d_name, "..") == 0;
    if (!is_dots && !is_there(fd, entry.d_name)) return true;
  }
  return false;
}

void rewind_shared_folder(int fd) {
  const KeptErrno kept;
  Door door;
  if (find(fd, Kind::kSharedFolder, door) && door.attached[0] >= 0) lseek(door.attached[0], 0, SEEK_SET);
}

}  // namespace dapple::doors

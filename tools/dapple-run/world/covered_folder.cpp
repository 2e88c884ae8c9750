// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/world/covered_folder.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>

#include "provider/system/owned_fd.hpp"

namespace dapple::run {
namespace {

enum class Kind { kFolder, kLink, kOther };
using Entries = std::map<std::string, Kind>;

bool list(int folder, Entries& entries) {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = again < 0 ? nullptr : fdopendir(again);
  if (stream == nullptr) return false;
  while (const dirent* entry = readdir(stream)) {
    struct stat status;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    entries[entry->d_name] = S_ISDIR(status.st_mode)   ? Kind::kFolder
                             : S_ISLNK(status.st_mode) ? Kind::kLink
                                                       : Kind::kOther;
  }
  closedir(stream);
  return true;
}

soft::OwnedFd open_folder(const std::string& path) {
  return soft::OwnedFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// Makes the entry `to` show the entry `name` of a folder, which another mount may cover by now.
bool show(int folder, const std::string& name, Kind kind, const std::string& to) {
  if (kind == Kind::kLink) {
    char target[PATH_MAX];
    const ssize_t size = readlinkat(folder, name.c_str(), target, sizeof target - 1);
    if (size < 0) return false;
    target[size] = '\0';
    return symlink(target, to.c_str()) == 0;
  }
  const bool made = kind == Kind::kFolder
                        ? mkdir(to.c_str(), 0755) == 0
                        : static_cast<bool>(soft::OwnedFd(open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444)));
  const std::string from = "/proc/self/fd/" + std::to_string(folder) + '/' + name;
  return made && mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

// As sysfs refuses changes. In a user namespace the mount must keep its other options.
bool protect(const std::string& place) {
  struct statvfs present;
  if (statvfs(place.c_str(), &present) != 0) return false;
  const unsigned long kept = (present.f_flag & ST_NOSUID ? MS_NOSUID : 0) | (present.f_flag & ST_NODEV ? MS_NODEV : 0) |
                             (present.f_flag & ST_NOEXEC ? MS_NOEXEC : 0);
  return mount(nullptr, place.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, nullptr) == 0;
}

// The folder has the kernel's devices already.
bool is_whole(const std::string& place) {
  return place.starts_with("/sys/class/infiniband");
}

bool is_part(const Entries& present, const std::string& place, const std::string& name, Kind kind) {
  const auto found = present.find(name);
  return found != present.end() && found->second == Kind::kFolder && kind == Kind::kFolder &&
         !is_whole(place + '/' + name);
}

}  // namespace

bool cover(const std::string& place, const std::string& tree) {
  const soft::OwnedFd below = open_folder(place), added = open_folder(tree);
  Entries present, wanted;
  if (!below || !added || !list(below.get(), present) || !list(added.get(), wanted)) return false;
  bool is_new = false;
  for (const auto& [name, kind] : wanted) is_new |= !is_part(present, place, name, kind);
  if (is_new) {
    if (mount("dapple", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") != 0) return false;
    for (const auto& [name, kind] : present) {
      const auto found = wanted.find(name);
      if (found != wanted.end() && !is_part(present, place, name, found->second)) continue;
      // An entry may have gone meanwhile, and without rights to it the program cannot use it, either.
      show(below.get(), name, kind, place + '/' + name);
    }
  }
  for (const auto& [name, kind] : wanted) {
    const std::string to = place + '/' + name;
    const bool good = is_part(present, place, name, kind)
                          ? cover(to, tree + '/' + name)
                          : show(added.get(), name, kind, to) && (kind == Kind::kLink || protect(to));
    if (!good) return false;
  }
  // Programs make files of their own in /dev.
  return !is_new || place.starts_with("/dev") || protect(place);
}

}  // namespace dapple::run

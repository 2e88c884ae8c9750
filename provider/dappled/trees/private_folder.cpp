// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/trees/private_folder.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "provider/face/writer.hpp"
#include "provider/system/random.hpp"

namespace dapple::dappled {
namespace {

constexpr char kPrefix[] = "dapple-face-";
constexpr char kRunFolder[] = "/run/dapple";
constexpr int kTries = 16;
// A place may hold many files of others.
constexpr int kMaxLooks = 10000;

// Removes the folder if it is ours and nobody has the lock.
void remove_if_left(int place, const char* name) {
  const soft::OwnedFd folder(openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!folder || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid()) return;
  // The lock ends with the process that has it, so a number that a new process has got does not matter.
  if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) face::remove_whole(place, name);
}

void remove_left_folders(int place) {
  const int again = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = again < 0 ? nullptr : fdopendir(again);
  if (stream == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  for (int i = 0; i < kMaxLooks; i++) {
    const dirent* entry = readdir(stream);
    if (entry == nullptr) break;
    if (strncmp(entry->d_name, kPrefix, sizeof kPrefix - 1) == 0) remove_if_left(place, entry->d_name);
  }
  closedir(stream);
}

std::string new_name() {
  uint64_t number = 0;
  soft::fill_with_random_bytes(&number, sizeof number);
  char name[sizeof kPrefix + 16];
  snprintf(name, sizeof name, "%s%016llx", kPrefix, static_cast<unsigned long long>(number));
  return name;
}

// False if another process has removed the folder before it was locked.
bool is_linked(int place, const char* name, int folder) {
  struct stat here, there;
  return fstat(folder, &here) == 0 && fstatat(place, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

// A tree has thousands of files, and all programs wait while a busy disk takes them. In a container /run may be on one.
bool is_in_memory(const std::string& place) {
  struct statfs status;
  if (statfs(place == kRunFolder ? "/run" : place.c_str(), &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

}  // namespace

ParentFolders ParentFolders::of_this_process() {
  ParentFolders places;
  const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
  struct stat status;
  // The variable may be another user's, after sudo.
  if (runtime != nullptr && runtime[0] == '/' && stat(runtime, &status) == 0 && status.st_uid == geteuid()) {
    places.names[places.count++] = runtime;
  }
  const int chosen = places.count;
  if (geteuid() == 0) places.names[places.count++] = kRunFolder;
  places.names[places.count++] = "/dev/shm";
  places.names[places.count++] = "/tmp";
  assert(places.count <= kMax);
  std::stable_partition(places.names + chosen, places.names + places.count, is_in_memory);
  return places;
}

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  if (this == &other) return *this;
  remove();
  place_ = std::move(other.place_);
  folder_ = std::move(other.folder_);
  name_ = std::move(other.name_);
  path_ = std::move(other.path_);
  return *this;
}

int PrivateFolder::make(const std::string& place) {
  assert(!folder_);
  if (place == kRunFolder && mkdir(kRunFolder, 0755) != 0 && errno != EEXIST) return errno;
  place_.reset(open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place_) return errno;
  remove_left_folders(place_.get());
  for (int i = 0; i < kTries; i++) {
    name_ = new_name();
    if (mkdirat(place_.get(), name_.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;
      return errno;
    }
    folder_.reset(openat(place_.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int error = folder_ && flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == 0 && is_linked(place_.get(), name_.c_str(), folder_.get())) {
      path_ = place + '/' + name_;
      return 0;
    }
    folder_.reset();
    // Another dappled that looks for left folders has removed it, or had the lock for a moment.
    if (error == 0 || error == EWOULDBLOCK || error == ENOENT) continue;
    unlinkat(place_.get(), name_.c_str(), AT_REMOVEDIR);
    return error;
  }
  return EAGAIN;
}

void PrivateFolder::remove() {
  if (!folder_) return;
  assert(place_ && !name_.empty());
  // Somebody may have put another folder in its place.
  if (is_linked(place_.get(), name_.c_str(), folder_.get())) face::remove_whole(place_.get(), name_.c_str());
  folder_.reset();
  place_.reset();
}

soft::OwnedFd PrivateFolder::reopen() const {
  return soft::OwnedFd(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace dapple::dappled

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cassert>

#include "provider/face/writer.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::face {
namespace {

// Deeper than any tree of ours. A foreign folder that somebody has put in ends the removal here.
constexpr int kMaxDepth = 32;
// Somebody could add entries all the time.
constexpr int kMaxPasses = 16;

int remove_within(int folder, const char* name, int depth);

int remove_contents(soft::OwnedFd folder, int depth) {
  const int fd = folder.get();
  DIR* stream = fdopendir(fd);
  if (stream == nullptr) return errno;
  folder.release();
  int error = 0;
  // An entry may be skipped while others are removed, so this begins again until nothing is left.
  bool any = true;
  for (int pass = 0; pass < kMaxPasses && any && error == 0; pass++) {
    rewinddir(stream);
    any = false;
    while (const dirent* entry = readdir(stream)) {
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      any = true;
      if ((error = remove_within(fd, entry->d_name, depth + 1)) != 0) break;
    }
  }
  closedir(stream);
  return error == 0 && any ? ENOTEMPTY : error;
}

int remove_within(int folder, const char* name, int depth) {
  assert(depth <= kMaxDepth + 1);
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return 0;
  // Linux says EISDIR, and some file systems EPERM.
  if (errno != EISDIR && errno != EPERM) return errno;
  const int reason = errno;
  if (depth > kMaxDepth) return ELOOP;
  soft::OwnedFd below(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!below) return errno == ENOTDIR ? reason : errno;
  if (const int error = remove_contents(std::move(below), depth); error != 0) return error;
  return unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

}  // namespace

int remove_contents(int folder) {
  soft::OwnedFd again(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return again ? remove_contents(std::move(again), 0) : errno;
}

int remove_whole(int folder, const char* name) {
  return remove_within(folder, name, 0);
}

}  // namespace dapple::face

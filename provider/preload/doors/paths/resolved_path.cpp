// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/resolved_path.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>

#include "provider/preload/doors/paths/face_mark.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace {

// The process did not begin in the tree: its working directory, and its open folders.
constinit std::atomic<bool> began_elsewhere[2] = {false, false};

// valgrind does not know openat2() and says so at each call. Constructors of other libraries may ask before ours run.
bool in_valgrind() {
  enum Answer : uint8_t { kUnknown, kYes, kNo };
  static constinit std::atomic<Answer> known = kUnknown;
  Answer answer = known.load(std::memory_order_relaxed);
  if (answer == kUnknown) {
    const char* preloaded = getenv("LD_PRELOAD");
    answer = preloaded != nullptr && strstr(preloaded, "/vgpreload_") != nullptr ? kYes : kNo;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
}

// The absolute path of the working directory, or of an open folder, as the kernel knows it. False if it has none. A
// folder that the next dappled has removed keeps its path.
bool path_of(int folder, char (&path)[kPathSize]) {
  if (folder == AT_FDCWD && syscall(SYS_getcwd, path, sizeof path) > 0) return true;
  char link[32] = "/proc/self/cwd";
  if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  const long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return true;
}

bool has_folder_in_tree() {
  const int list = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (list < 0) return false;
  bool found = false;
  alignas(dirent64) char entries[1024];
  for (long size; !found && (size = syscall(SYS_getdents64, list, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < size && !found;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      char path[256];
      const long length = syscall(SYS_readlinkat, list, entry->d_name, path, sizeof path - 1);
      if (length <= 0) continue;
      path[length] = '\0';
      found = shown_path(path) != nullptr;
    }
  }
  real.close(list);
  return found;
}

}  // namespace

bool shown_path_of(int folder, char (&path)[kPathSize]) {
  if (folder != AT_FDCWD) {
    // Most folders have another file system.
    struct stat status;
    if (syscall(SYS_fstat, folder, &status) != 0) return false;
    if (tree_device() != 0 && status.st_dev != tree_device()) return false;
  }
  if (!path_of(folder, path)) return false;
  if (shown_path(path) == nullptr) return false;
  show(path, static_cast<ssize_t>(strlen(path)));
  return true;
}

namespace detail {

bool began_in_tree(int folder) {
  std::atomic<bool>& elsewhere = began_elsewhere[folder == AT_FDCWD ? 0 : 1];
  if (elsewhere.load(std::memory_order_relaxed)) return false;
  const int error = errno;
  char path[kPathSize];
  const bool found = folder == AT_FDCWD ? shown_path_of(AT_FDCWD, path) : has_folder_in_tree();
  // In a child of vfork() this is the parent's memory, whose working directory may be another one.
  if (owns_table()) {
    if (found) note_tree_in_use();
    elsewhere = true;
  }
  errno = error;
  return found;
}

}  // namespace detail

bool leads_to_tree_after_all(int folder, const char* path) {
  if (!may_name_entry(path) && !in_valgrind()) {
    // Fails with ELOOP if there is a link on the way.
    open_how how = {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS;
    const long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0) real.close(static_cast<int>(fd));
    const bool has_link = fd < 0 && errno == ELOOP;
    errno = ENOENT;
    if (!has_link) return false;
  }
  Walked walked;
  char base[kPathSize] = "/";
  bool leads = path[0] == '/' || path_of(folder, base);
  if (leads) {
    walk(-1, base, path, true, walked);
    leads = (walked.end == Walked::End::kKernel || walked.error == ENOENT) && may_lead_to_tree(AT_FDCWD, walked.path);
  }
  errno = ENOENT;
  return leads;
}

ResolvedPath::ResolvedPath(int folder, const char* path, bool follow_last, bool after_all) {
  char base[kPathSize] = "/";
  if (path[0] != '/' && !(after_all ? path_of(folder, base) : shown_path_of(folder, base))) return;
  root = tree_root();
  if (root < 0) return;
  walk(root, base, path, follow_last, walked);
  assert(walked.end == Walked::End::kFailed || walked.path[0] == '/');
  if (walked.end != Walked::End::kTree && detail::leads_through_process(path)) return;
  switch (walked.end) {
    case Walked::End::kFailed:
      where = Where::kFailed;
      errno = walked.error;
      return;
    case Walked::End::kKernel:
      where = Where::kKernel;
      return;
    case Walked::End::kTree:
      where = Where::kTree;
      if (walked.path[1] == 'd' && maybe_ours(walked.path)) file = look_up(walked.path);
      if (file.target != Target::kOther) where = Where::kDoor;
  }
}

}  // namespace dapple::doors

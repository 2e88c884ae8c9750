// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Finds the file that a path of the program means: one of the kernel's doors, a file of the tree, or the kernel's.
#pragma once

#include <errno.h>
#include <string.h>

#include "provider/common/settings.hpp"
#include "provider/preload/doors/files.hpp"
#include "provider/preload/doors/paths/root.hpp"
#include "provider/preload/doors/paths/walk.hpp"

namespace dapple::doors {

struct ResolvedPath {
  enum class Where : uint8_t {
    kOther,   // the call goes on unchanged
    kDoor,    // `file`
    kTree,    // walked.below() from `root`
    kKernel,  // walked.path, which is not the program's path
    kFailed,  // errno is set
  };
  Where where = Where::kOther;
  int root = -1;
  File file;
  Walked walked;

  // A relative path begins at `folder`, as for openat(). `after_all`: the kernel has found no such file.
  ResolvedPath(int folder, const char* path, bool follow_last, bool after_all);
  // False if dappled cannot be reached, or for another folder than one in the tree.
  bool is_found() const { return where != Where::kOther; }
};

namespace detail {

// The working directory, or the open folders, with which the process began. Asks the kernel once.
bool began_in_tree(int folder);

inline bool may_be_below_sys(const char* path) {
  if (strstr(path, "infiniband") != nullptr) return true;
  const bool may_be_of_function = strncmp(path, "class/net/", 10) == 0 || strncmp(path, "devices/pci", 11) == 0 ||
                                  strncmp(path, "bus/pci/", 8) == 0;
  // Only a chosen identity may have a PCI function.
  return may_be_of_function && provider::settings().as != nullptr;
}

// By a link of /proc, such as "/proc/self/fd/3/name" or "/proc/1/root/name". It leads to the file itself, also in
// another mount namespace, where the link's text names another file. So a path that does not end in the tree goes on
// unchanged.
inline bool leads_through_process(const char* path) {
  if (strncmp(path, "/proc/", 6) == 0) {
    return strstr(path, "/fd/") != nullptr || strstr(path, "/cwd/") != nullptr || strstr(path, "/root/") != nullptr;
  }
  return strncmp(path, "/dev/fd/", 8) == 0;
}

}  // namespace detail

// The first test of each function with a path: true if the path may lead into the tree.
inline bool may_lead_to_tree(int folder, const char* path) {
  if (path == nullptr) return false;
  if (path[0] != '/') return path[0] != '\0' && (is_tree_in_use() || detail::began_in_tree(folder));
  switch (path[1]) {
    case 's':
      return strncmp(path + 2, "ys/", 3) == 0 && detail::may_be_below_sys(path + 5);
    case 'd':
      if (strncmp(path + 2, "ev/infiniband", 13) == 0) return !names_kernel_device(path);
      return is_tree_in_use() && detail::leads_through_process(path);
    case '/':
    case '.':
      return strstr(path, "infiniband") != nullptr;
    case 'p':
      if (strncmp(path + 2, "roc/", 4) != 0) return false;
      return strstr(path + 6, "/sys/") != nullptr || (is_tree_in_use() && detail::leads_through_process(path));
    default:
      return false;
  }
}

// The path, as the program knows it, of the working directory (AT_FDCWD) or of an open folder. False if it does not lie
// in a tree, of this dappled or of a dead one.
bool shown_path_of(int folder, char (&path)[kPathSize]);

// The path may name an entry that only the tree has, in a folder that the kernel has, too. With a chosen identity such
// an entry may have any name.
inline bool may_name_entry(const char* path) {
  return strstr(path, "infiniband") != nullptr || (path[0] != '/' && provider::settings().as != nullptr);
}

// The kernel has found no such file, and no link can be the reason: there are none on the way to a single name, and
// those of sysfs lead to no other file system.
inline bool has_no_link(const char* path, bool follow_last) {
  if (!follow_last && strchr(path, '/') == nullptr) return !may_name_entry(path);
  return strncmp(path, "/sys/", 5) == 0 && strstr(path, "/.") == nullptr && strstr(path, "//") == nullptr;
}

// The second test, after the kernel has found no such file: links, and names such as "x/../sys", lead into the tree.
// Keeps errno.
bool leads_to_tree_after_all(int folder, const char* path);

// An open file lies in the tree; then `path` is its path as the program knows it. Keeps errno if it does.
inline bool lies_in_tree(int fd, char (&path)[kPathSize]) {
  return fd >= 0 && (is_tree_in_use() || detail::began_in_tree(fd)) && shown_path_of(fd, path);
}

namespace detail {
inline bool is_failure(long result) {
  return result < 0;
}
inline bool is_failure(const void* result) {
  return result == nullptr;
}
}  // namespace detail

// Calls kernel(), which passes the program's call on. If the path leads elsewhere it calls ours(resolved) instead, with
// anything but kOther.
template <class Kernel, class Ours>
auto call_by_path(int folder, const char* path, bool follow_last, Kernel kernel, Ours ours) {
  using Result = decltype(kernel());
  const auto locate = [&](bool after_all, Result& result) __attribute__((noinline)) {
    const ResolvedPath at(folder, path, follow_last, after_all);
    if (at.is_found()) result = ours(at);
    return at.is_found();
  };
  Result result;
  const bool expected = may_lead_to_tree(folder, path);
  if (expected && locate(false, result)) return result;
  result = kernel();
  if (!detail::is_failure(result) || errno != ENOENT || path == nullptr || path[0] == '\0') return result;
  if ((expected && path[0] == '/') || has_no_link(path, follow_last)) return result;
  if (leads_to_tree_after_all(folder, path) && !locate(true, result)) errno = ENOENT;
  return result;
}

}  // namespace dapple::doors

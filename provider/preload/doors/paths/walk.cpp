// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/walk.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>

#include "provider/preload/doors/paths/face_mark.hpp"

namespace dapple::doors {
namespace {

constexpr unsigned kMaxLinks = 40;  // the kernel's limit

constexpr char kDeviceFolder[] = "/dev/infiniband";

// The tree has everything below these folders.
constexpr const char* kOwnFolders[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                       "/sys/class/infiniband_mad", "/sys/devices/virtual/infiniband", kDeviceFolder};

enum class Found : uint8_t { kMissing, kThere, kLink, kError };

bool is_in(const char* path, const char* folder) {
  const size_t size = strlen(folder);
  return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

// "0000:3b:00.0"
bool is_pci_function(const char* name, size_t size) {
  return size == 12 && name[4] == ':' && name[7] == ':' && name[10] == '.';
}

class Walk {
 public:
  Walk(int root, Walked& walked) : root_(root), walked_(walked) {}

  void run(const char* base, const char* path, bool follow_last) {
    const size_t size = strnlen(path, kPathSize);
    if (size == 0 || size == kPathSize) return fail(size == 0 ? ENOENT : ENAMETOOLONG);
    at_ = rest_ + kPathSize - 1 - size;
    memcpy(at_, path, size + 1);
    begin_at(path[0] == '/' ? "/" : base);
    while (!failed_ && step(follow_last)) continue;
    assert_consistent();
    if (!failed_) finish();
  }

 private:
  // The names that are left. A link's target is put before them.
  struct Name {
    const char* text;
    size_t size;
    bool last;
  };

  void fail(int error) {
    walked_.end = Walked::End::kFailed;
    walked_.error = error;
    failed_ = true;
  }

  // The path so far. `path` is absolute, without a slash at its end unless it is "/".
  void begin_at(const char* path) {
    const size_t size = path[1] == '\0' ? 0 : strnlen(path, kPathSize - 1);
    memmove(walked_.path, path, size);
    walked_.path[walked_.size = size] = '\0';
    look_for_tree();
  }

  void look_for_tree() { in_tree_ = root_ >= 0 && (walked_.size == 0 || in_tree(walked_.path)); }

  bool in_tree(const char* path) const {
    struct stat status;
    return root_ >= 0 && syscall(SYS_newfstatat, root_, path + 1, &status, AT_SYMLINK_NOFOLLOW) == 0;
  }

  // The tree, and not the kernel, has this path, which is in the tree or would be.
  bool is_own(const char* path) const {
    for (const char* folder : kOwnFolders) {
      if (is_in(path, folder)) return true;
    }
    if (!is_in(path, "/sys/devices")) return false;
    char vendor[512];
    for (const char* name = path + 1; *name != '\0';) {
      const char* end = strchrnul(name, '/');
      const auto size = static_cast<size_t>(end - path);
      if (is_pci_function(name, static_cast<size_t>(end - name)) && size + sizeof "/vendor" <= sizeof vendor) {
        memcpy(vendor, path, size);
        memcpy(vendor + size, "/vendor", sizeof "/vendor");
        if (in_tree(vendor)) return true;
      }
      name = *end == '\0' ? end : end + 1;
    }
    return false;
  }

  bool next(Name& name) {
    at_ += strspn(at_, "/");
    if (*at_ == '\0') return false;
    char* end = strchrnul(at_, '/');
    name = {.text = at_, .size = static_cast<size_t>(end - at_), .last = end[strspn(end, "/")] == '\0'};
    if (name.last && *end == '/') walked_.folder = true;
    at_ = end;
    return true;
  }

  bool step(bool follow_last) {
    Name name;
    if (!next(name)) return false;
    if (name.text[0] == '.' && (name.size == 1 || (name.size == 2 && name.text[1] == '.'))) {
      if (name.last) walked_.folder = true;
      if (name.size == 2) go_up();
      return true;
    }
    const size_t before = walked_.size;
    if (name.size > NAME_MAX || before + 1 + name.size + 1 >= kPathSize) {
      fail(ENAMETOOLONG);
      return false;
    }
    walked_.path[before] = '/';
    memcpy(walked_.path + before + 1, name.text, name.size);
    walked_.path[walked_.size = before + 1 + name.size] = '\0';
    const bool follow = !name.last || follow_last || walked_.folder;
    if (!in_tree_ || !step_in_tree(before, name.last, follow)) step_in_kernel(before, name.last, follow);
    return true;
  }

  void go_up() {
    struct stat status;
    if (walked_.size > 0 && in_tree_ &&
        syscall(SYS_newfstatat, root_, walked_.path + 1, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISDIR(status.st_mode)) {
      return fail(ENOTDIR);
    }
    while (walked_.size > 0 && walked_.path[walked_.size - 1] != '/') --walked_.size;
    if (walked_.size > 0) --walked_.size;
    walked_.path[walked_.size] = '\0';
    if (!in_tree_) look_for_tree();
  }

  // Reads the link at `path`, and puts the target behind the path so far, of which it is no part.
  Found read_link(int folder, const char* path, char*& target) {
    target = walked_.path + walked_.size + 1;
    const size_t room = kPathSize - walked_.size - 1;
    const long size = syscall(SYS_readlinkat, folder, path, target, room);
    if (size < 0 && errno == EINVAL) return Found::kThere;
    if (size < 0 && errno == ENOENT) return Found::kMissing;
    if (size < 0 || static_cast<size_t>(size) >= room) {
      fail(size < 0 ? errno : ENAMETOOLONG);
      return Found::kError;
    }
    target[size] = '\0';
    return Found::kLink;
  }

  // `before` is the size of the path without the last name, the link's.
  void follow(const char* target, size_t before) {
    const size_t size = strlen(target);
    if (++links_ > kMaxLinks) return fail(ELOOP);
    if (static_cast<size_t>(at_ - rest_) < size) return fail(ENAMETOOLONG);
    at_ -= size;
    memcpy(at_, target, size);
    if (target[0] == '/') return begin_at("/");
    walked_.path[walked_.size = before] = '\0';
  }

  // False if the kernel's file of this name counts.
  bool step_in_tree(size_t before, bool last, bool follow_it) {
    char* target;
    switch (read_link(root_, walked_.path + 1, target)) {
      case Found::kMissing:
        return false;
      case Found::kThere:
        return is_own(walked_.path) || last || !kernel_leads_elsewhere();
      case Found::kLink:
        // The kernel's own devices are links to themselves.
        if (strcmp(target, walked_.path) == 0) return in_tree_ = false;
        // What stands there for a device's file leads to no device.
        if (follow_it && !is_in(walked_.path, kDeviceFolder)) follow(target, before);
        return true;
      case Found::kError:
        break;
    }
    return true;
  }

  // The kernel has a link where the tree has a folder (/sys/class/net/eth0), and the tree lacks the next name.
  bool kernel_leads_elsewhere() {
    char* target;
    if (read_link(AT_FDCWD, walked_.path, target) != Found::kLink) return false;
    const char* name = at_ + strspn(at_, "/");
    while (name[0] == '.' && name[1] == '/') name += 1 + strspn(name + 1, "/");
    const size_t size = strcspn(name, "/");
    if (walked_.size + 1 + size + 1 > kPathSize || (size == 2 && name[0] == '.' && name[1] == '.')) return true;
    char* end = walked_.path + walked_.size;
    *end = '/';
    memcpy(end + 1, name, size);
    end[1 + size] = '\0';
    const bool has_next = in_tree(walked_.path);
    *end = '\0';
    return !has_next;
  }

  void step_in_kernel(size_t before, bool last, bool follow_it) {
    const bool parent_in_tree = in_tree_;
    in_tree_ = false;
    char* target;
    switch (read_link(AT_FDCWD, walked_.path, target)) {
      case Found::kMissing:
        if (!last) return stop_at_missing();
        in_tree_ = parent_in_tree && is_own(walked_.path);
        return;
      case Found::kLink:
        if (!follow_it) return;
        // Links of /proc lead to files that may have another path, or none.
        show(target, static_cast<ssize_t>(strlen(target)));
        if (target[0] != '/' && strstr(target, ":[") != nullptr) return;
        return follow(target, before);
      case Found::kThere:
      case Found::kError:
        return;
    }
  }

  void stop_at_missing() {
    const size_t left = strlen(at_);
    if (walked_.size + left < kPathSize) memmove(walked_.path + walked_.size, at_, left + 1);
    fail(ENOENT);
  }

  void finish() {
    walked_.end = Walked::End::kKernel;
    if (in_tree_ && walked_.size > 0) {
      struct stat status;
      const bool there = syscall(SYS_newfstatat, root_, walked_.path + 1, &status, AT_SYMLINK_NOFOLLOW) == 0;
      walked_.type = there ? status.st_mode & S_IFMT : 0;
      if (walked_.folder && there && walked_.type != S_IFDIR) return fail(ENOTDIR);
      const bool shared = walked_.type == S_IFDIR && !is_own(walked_.path) &&
                          syscall(SYS_newfstatat, AT_FDCWD, walked_.path, &status, 0) == 0;
      if (!shared) walked_.end = Walked::End::kTree;
    }
    // The kernel's call must see the slash, too.
    if (walked_.end == Walked::End::kKernel && (walked_.folder || walked_.size == 0)) {
      walked_.path[walked_.size++] = '/';
      walked_.path[walked_.size] = '\0';
    }
    assert(walked_.path[0] == '/' && walked_.size < kPathSize);
  }

  void assert_consistent() const {
    assert(failed_ || (walked_.size < kPathSize && walked_.path[walked_.size] == '\0'));
    assert(at_ == nullptr || (rest_ <= at_ && at_ < rest_ + kPathSize));
    assert(!in_tree_ || root_ >= 0);
    assert(links_ <= kMaxLinks + 1);
  }

  int root_;
  Walked& walked_;
  bool failed_ = false;
  bool in_tree_ = false;  // the tree has the path so far; the kernel may have it, too
  unsigned links_ = 0;
  char* at_ = nullptr;
  char rest_[kPathSize];
};

}  // namespace

void walk(int root, const char* base, const char* path, bool follow_last, Walked& walked) {
  walked.error = 0;
  walked.type = 0;
  walked.folder = false;
  Walk(root, walked).run(base, path, follow_last);
}

}  // namespace dapple::doors

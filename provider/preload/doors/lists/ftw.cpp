// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// ftw() and nftw() for walks that pass the tree, by fts_open() and its relatives.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/preload/doors/lists/passes_tree.hpp"
#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

// A walk that follows links comes to each folder once only.
class Folders {
 public:
  Folders() = default;
  ~Folders() { tdestroy(all_, free); }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;

  // False if the folder was there before, or without memory.
  bool add(const struct stat& status) {
    auto* const id = static_cast<Id*>(malloc(sizeof(Id)));
    if (id == nullptr) return false;
    *id = {status.st_dev, status.st_ino};
    auto* const* const place = static_cast<Id* const*>(tsearch(id, &all_, compare));
    if (place != nullptr && *place == id) return true;
    free(id);
    return false;
  }

 private:
  struct Id {
    dev_t device;
    ino_t inode;
  };
  static int compare(const void* left, const void* right) {
    const Id& a = *static_cast<const Id*>(left);
    const Id& b = *static_cast<const Id*>(right);
    if (a.device != b.device) return a.device < b.device ? -1 : 1;
    return a.inode == b.inode ? 0 : a.inode < b.inode ? -1 : 1;
  }

  void* all_ = nullptr;
};

// With FTW_CHDIR: the working directory at the beginning, to which the walk returns.
class Start {
 public:
  explicit Start(bool wanted) : fd_(wanted ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : kUnused) {}
  ~Start() {
    if (fd_ < 0) return;
    const int error = errno;
    if (fchdir(fd_) != 0) errno = error;
    close(fd_);
    errno = error;
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  bool is_known() const { return fd_ != -1; }
  // Into the folder that the first `size` bytes of the path name.
  bool go_to(const char* path, size_t size) const {
    if (fd_ < 0) return true;
    char folder[PATH_MAX];
    if (fchdir(fd_) != 0) return false;
    if (size == 0) return true;
    if (size >= sizeof folder) {
      errno = ENAMETOOLONG;
      return false;
    }
    memcpy(folder, path, size);
    folder[size] = '\0';
    return chdir(folder) == 0;
  }

 private:
  static constexpr int kUnused = -2;
  int fd_;
};

constexpr int kNothing = -1;

// The kind that the program's function sees, or kNothing.
int kind_of(FTS* fts, FTSENT* entry, int flags, Folders& seen) {
  switch (entry->fts_info) {
    case FTS_D:
      if ((flags & FTW_PHYS) == 0 && !seen.add(*entry->fts_statp)) break;
      if (fts_children(fts, 0) == nullptr && errno != 0) {
        entry->fts_number = 1;
        fts_set(fts, entry, FTS_SKIP);
        return FTW_DNR;
      }
      return (flags & FTW_DEPTH) == 0 ? FTW_D : kNothing;
    case FTS_DP:
      return (flags & FTW_DEPTH) != 0 && entry->fts_number == 0 ? FTW_DP : kNothing;
    case FTS_DNR:
    case FTS_DC:
      return kNothing;
    case FTS_NS:
      return FTW_NS;
    case FTS_SL:
      return FTW_SL;
    case FTS_SLNONE:
      return FTW_SLN;
    default:
      return FTW_F;
  }
  entry->fts_number = 1;
  fts_set(fts, entry, FTS_SKIP);
  return kNothing;
}

// True if the walk ends with `result`, which the program's function has returned.
bool ends(FTS* fts, FTSENT* entry, int flags, int& result) {
  if (result == 0) return false;
  if ((flags & FTW_ACTIONRETVAL) == 0 || (result != FTW_SKIP_SUBTREE && result != FTW_SKIP_SIBLINGS)) return true;
  if (entry->fts_info == FTS_D) fts_set(fts, entry, FTS_SKIP);
  if (result == FTW_SKIP_SIBLINGS) {
    for (FTSENT* next = entry->fts_link; next != nullptr; next = next->fts_link) fts_set(fts, next, FTS_SKIP);
  }
  result = 0;
  return false;
}

template <class Visit>
int go(FTS* fts, int flags, Visit visit) {
  const Start start((flags & FTW_CHDIR) != 0);
  if (!start.is_known()) return -1;
  Folders seen;
  dev_t device = 0;
  for (;;) {
    // The paths begin where the program began.
    if (!start.go_to("", 0)) return -1;
    FTSENT* const entry = fts_read(fts);
    if (entry == nullptr) return errno == 0 ? 0 : -1;
    if (entry->fts_level == FTS_ROOTLEVEL && entry->fts_info != FTS_DP) {
      device = entry->fts_statp->st_dev;
      if (entry->fts_info == FTS_NS) {
        errno = entry->fts_errno;
        return -1;
      }
    }
    const bool is_elsewhere = (flags & FTW_MOUNT) != 0 && entry->fts_statp->st_dev != device;
    const int kind = is_elsewhere && entry->fts_info != FTS_NS ? kNothing : kind_of(fts, entry, flags, seen);
    if (kind == kNothing) continue;
    const char* const slash = strrchr(entry->fts_path, '/');
    FTW place = {.base = slash == nullptr ? 0 : static_cast<int>(slash + 1 - entry->fts_path),
                 .level = entry->fts_level};
    if (!start.go_to(entry->fts_path, static_cast<size_t>(place.base))) return -1;
    int result = visit(entry->fts_path, entry->fts_statp, kind, &place);
    if (ends(fts, entry, flags, result)) return result;
  }
}

template <class Visit>
int go_through(const char* path, int flags, Visit visit) {
  char* const root = strdup(path);
  if (root == nullptr) return -1;
  for (size_t size = strlen(root); size > 1 && root[size - 1] == '/'; --size) root[size - 1] = '\0';
  char* const roots[] = {root, nullptr};
  const int options =
      ((flags & FTW_PHYS) != 0 ? FTS_PHYSICAL : FTS_LOGICAL) | ((flags & FTW_MOUNT) != 0 ? FTS_XDEV : 0);
  FTS* const fts = fts_open(roots, options, nullptr);
  free(root);
  if (fts == nullptr) return -1;
  const int result = go(fts, flags, visit);
  const int error = errno;
  fts_close(fts);
  errno = error;
  return result;
}

}  // namespace

DAPPLE_WRAPPER(ftw, int wrapped_ftw(const char* path, __ftw_func_t function, int folders)) {
  if (!passes_tree(path)) return NEXT(ftw)(path, function, folders);
  return go_through(path, 0, [&](const char* name, const struct stat* status, int kind, const FTW*) {
    return function(name, status, kind == FTW_SLN ? FTW_NS : kind);
  });
}
DAPPLE_WRAPPER_ALIAS(ftw64, ftw, int wrapped_ftw64(const char* path, __ftw_func_t function, int folders));

DAPPLE_WRAPPER(nftw, int wrapped_nftw(const char* path, __nftw_func_t function, int folders, int flags)) {
  if (!passes_tree(path)) return NEXT(nftw)(path, function, folders, flags);
  return go_through(path, flags, [&](const char* name, const struct stat* status, int kind, FTW* place) {
    return function(name, status, kind, place);
  });
}
DAPPLE_WRAPPER_ALIAS(nftw64, nftw,
                     int wrapped_nftw64(const char* path, __nftw_func_t function, int folders, int flags));

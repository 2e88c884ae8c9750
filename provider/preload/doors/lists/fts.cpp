// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// fts_open() and its relatives. The C library's own functions make system calls that no door sees, so walks that pass
// the tree are ours. They never change the working directory, as with FTS_NOCHDIR.
#include <fts.h>

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cassert>

#include "provider/preload/doors/lists/passes_tree.hpp"
#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

static_assert(sizeof(FTSENT) == sizeof(FTSENT64) && sizeof(struct stat) == sizeof(struct stat64));

// In fts_options, where the C library has no such bit.
constexpr int kOurs = 1 << 30;

using Order = int (*)(const FTSENT**, const FTSENT**);

bool is_ours(const FTS* fts) {
  return (fts->fts_options & kOurs) != 0;
}

bool has(const FTS* fts, int option) {
  return (fts->fts_options & option) != 0;
}

bool is_dots(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

struct Status {
  struct stat status;
  FTSENT entry;  // its name and its path follow
};

void free_entry(FTSENT* entry) {
  free(reinterpret_cast<char*>(entry) - offsetof(Status, entry));
}

void free_list(FTSENT* first) {
  while (first != nullptr) {
    FTSENT* const next = first->fts_link;
    free_entry(first);
    first = next;
  }
}

// Null without memory. A root has no folder.
FTSENT* make_entry(FTSENT* parent, const char* folder, const char* name) {
  const size_t name_size = strlen(name), folder_size = strlen(folder);
  const bool slash = folder_size > 0 && folder[folder_size - 1] != '/';
  const size_t path_size = folder_size + (slash ? 1 : 0) + name_size;
  auto* const memory = static_cast<Status*>(calloc(1, sizeof(Status) + name_size + 1 + path_size + 1));
  if (memory == nullptr) return nullptr;
  FTSENT* const entry = &memory->entry;
  memcpy(entry->fts_name, name, name_size + 1);
  entry->fts_path = entry->fts_accpath = entry->fts_name + name_size + 1;
  memcpy(entry->fts_path, folder, folder_size);
  if (slash) entry->fts_path[folder_size] = '/';
  memcpy(entry->fts_path + path_size - name_size, name, name_size + 1);
  entry->fts_namelen = static_cast<unsigned short>(name_size);
  entry->fts_pathlen = static_cast<unsigned short>(path_size);
  entry->fts_statp = &memory->status;
  entry->fts_parent = parent;
  entry->fts_level = static_cast<short>(parent == nullptr ? FTS_ROOTPARENTLEVEL : parent->fts_level + 1);
  entry->fts_instr = FTS_NOINSTR;
  return entry;
}

// The entry's fts_info.
unsigned short examine(const FTS* fts, FTSENT* entry, bool follow) {
  struct stat* const status = entry->fts_statp;
  if (has(fts, FTS_LOGICAL) || follow) {
    if (stat(entry->fts_path, status) != 0) {
      const int error = errno;
      if (lstat(entry->fts_path, status) == 0) return FTS_SLNONE;
      entry->fts_errno = error;
      return FTS_NS;
    }
  } else if (lstat(entry->fts_path, status) != 0) {
    entry->fts_errno = errno;
    return FTS_NS;
  }
  entry->fts_dev = status->st_dev;
  entry->fts_ino = status->st_ino;
  entry->fts_nlink = status->st_nlink;
  if (S_ISLNK(status->st_mode)) return FTS_SL;
  if (!S_ISDIR(status->st_mode)) return S_ISREG(status->st_mode) ? FTS_F : FTS_DEFAULT;
  if (entry->fts_level > FTS_ROOTLEVEL && is_dots(entry->fts_name)) return FTS_DOT;
  for (FTSENT* above = entry->fts_parent; above->fts_level >= FTS_ROOTLEVEL; above = above->fts_parent) {
    if (above->fts_ino != entry->fts_ino || above->fts_dev != entry->fts_dev) continue;
    entry->fts_cycle = above;
    return FTS_DC;
  }
  return FTS_D;
}

FTSENT* sorted(FTSENT* first, size_t count, Order order) {
  if (order == nullptr || count < 2) return first;
  auto** const all = static_cast<FTSENT**>(malloc(count * sizeof(void*)));
  if (all == nullptr) return first;
  for (size_t i = 0; i < count; ++i, first = first->fts_link) all[i] = first;
  const auto compare = [](const void* left, const void* right, void* how) {
    return (*static_cast<Order*>(how))(static_cast<const FTSENT**>(const_cast<void*>(left)),
                                       static_cast<const FTSENT**>(const_cast<void*>(right)));
  };
  qsort_r(all, count, sizeof(void*), compare, &order);
  for (size_t i = 0; i < count; ++i) all[i]->fts_link = i + 1 < count ? all[i + 1] : nullptr;
  first = all[0];
  free(all);
  return first;
}

Order order_of(const FTS* fts) {
  return reinterpret_cast<Order>(fts->fts_compar);
}

// The end, with errno: nothing can be read any more.
FTSENT* stop(FTS* fts, int error) {
  fts->fts_options |= FTS_STOP;
  errno = error;
  return nullptr;
}

// Null with errno 0 for a folder without entries.
FTSENT* entries_of(FTS* fts, FTSENT* folder) {
  DIR* const list = opendir(folder->fts_path);
  if (list == nullptr) return nullptr;
  FTSENT* first = nullptr;
  FTSENT** last = &first;
  size_t count = 0;
  while (const dirent* found = readdir(list)) {
    if (is_dots(found->d_name) && !has(fts, FTS_SEEDOT)) continue;
    FTSENT* const entry = make_entry(folder, folder->fts_path, found->d_name);
    if (entry == nullptr) {
      closedir(list);
      free_list(first);
      return stop(fts, ENOMEM);
    }
    const bool need_none = has(fts, FTS_NOSTAT) && found->d_type != DT_DIR && found->d_type != DT_UNKNOWN;
    entry->fts_info = need_none ? static_cast<unsigned short>(FTS_NSOK) : examine(fts, entry, false);
    *last = entry;
    last = &entry->fts_link;
    ++count;
  }
  closedir(list);
  errno = 0;
  return sorted(first, count, order_of(fts));
}

// The roots, as entries beside an entry that only leads to the first of them.
bool add_roots(FTS* fts, char* const* names) {
  FTSENT* const above = make_entry(nullptr, "", "");
  if (above == nullptr) return false;
  fts->fts_cur = make_entry(above, "", "");
  if (fts->fts_cur == nullptr) {
    free_entry(above);
    return false;
  }
  fts->fts_cur->fts_info = FTS_INIT;
  FTSENT** last = &fts->fts_cur->fts_link;
  size_t count = 0;
  for (; names[count] != nullptr; ++count) {
    FTSENT* const root = names[count][0] == '\0' ? nullptr : make_entry(above, "", names[count]);
    if (root == nullptr) {
      if (names[count][0] == '\0') errno = ENOENT;
      return false;
    }
    root->fts_info = examine(fts, root, has(fts, FTS_COMFOLLOW));
    const char* const slash = strrchr(root->fts_name, '/');
    if (slash != nullptr && (slash != root->fts_name || slash[1] != '\0')) {
      root->fts_namelen = static_cast<unsigned short>(strlen(slash + 1));
      memmove(root->fts_name, slash + 1, root->fts_namelen + size_t{1});
    }
    *last = root;
    last = &root->fts_link;
  }
  fts->fts_cur->fts_link = sorted(fts->fts_cur->fts_link, count, order_of(fts));
  return true;
}

// Into a folder, to its first entry.
FTSENT* enter(FTS* fts, FTSENT* folder) {
  assert(folder == fts->fts_cur && folder->fts_info == FTS_D);
  if (fts->fts_child == nullptr) {
    fts->fts_child = entries_of(fts, folder);
    if (has(fts, FTS_STOP)) return nullptr;
  }
  if (fts->fts_child == nullptr) {
    folder->fts_errno = errno;
    folder->fts_info = errno != 0 ? FTS_DNR : FTS_DP;
    return folder;
  }
  fts->fts_cur = fts->fts_child;
  fts->fts_child = nullptr;
  return fts->fts_cur;
}

// Behind an entry, which ends.
FTSENT* go_on(FTS* fts, FTSENT* now) {
  assert(fts->fts_child == nullptr && now->fts_parent != nullptr);
  while (FTSENT* const next = now->fts_link) {
    free_entry(now);
    fts->fts_cur = now = next;
    if (next->fts_level == FTS_ROOTLEVEL) fts->fts_dev = next->fts_dev;
    if (next->fts_instr == FTS_SKIP) continue;
    if (next->fts_instr == FTS_FOLLOW) next->fts_info = examine(fts, next, true);
    next->fts_instr = FTS_NOINSTR;
    return next;
  }
  FTSENT* const parent = now->fts_parent;
  free_entry(now);
  if (parent->fts_level == FTS_ROOTPARENTLEVEL) {
    free_entry(parent);
    errno = 0;
    return fts->fts_cur = nullptr;
  }
  parent->fts_info = parent->fts_errno != 0 ? FTS_ERR : FTS_DP;
  return fts->fts_cur = parent;
}

FTSENT* read_next(FTS* fts) {
  FTSENT* const now = fts->fts_cur;
  if (now == nullptr || has(fts, FTS_STOP)) return nullptr;
  const int instruction = now->fts_instr;
  now->fts_instr = FTS_NOINSTR;
  const bool follow = instruction == FTS_FOLLOW && (now->fts_info == FTS_SL || now->fts_info == FTS_SLNONE);
  if (instruction == FTS_AGAIN || follow) {
    now->fts_info = examine(fts, now, follow);
    return now;
  }
  if (now->fts_info != FTS_D) return go_on(fts, now);
  if (instruction != FTS_SKIP && (!has(fts, FTS_XDEV) || now->fts_dev == fts->fts_dev)) return enter(fts, now);
  free_list(fts->fts_child);
  fts->fts_child = nullptr;
  now->fts_info = FTS_DP;
  return now;
}

int end(FTS* fts) {
  for (FTSENT* now = fts->fts_cur; now != nullptr;) {
    FTSENT* const next = now->fts_link != nullptr ? now->fts_link : now->fts_parent;
    free_entry(now);
    now = next;
  }
  free_list(fts->fts_child);
  free(fts);
  return 0;
}

FTS* begin(char* const* names, int options, Order order) {
  if ((options & ~FTS_OPTIONMASK) != 0 || (options & (FTS_LOGICAL | FTS_PHYSICAL)) == 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const fts = static_cast<FTS*>(calloc(1, sizeof(FTS)));
  if (fts == nullptr) return nullptr;
  fts->fts_options = options | FTS_NOCHDIR | kOurs;
  fts->fts_compar = reinterpret_cast<decltype(fts->fts_compar)>(order);
  fts->fts_rfd = -1;
  if (add_roots(fts, names)) return fts;
  const int error = errno;
  end(fts);
  errno = error;
  return nullptr;
}

}  // namespace

DAPPLE_WRAPPER(fts_open, FTS* wrapped_fts_open(char* const* names, int options, Order order)) {
  for (char* const* name = names; *name != nullptr; ++name) {
    if (passes_tree(*name)) return begin(names, options, order);
  }
  return NEXT(fts_open)(names, options, order);
}

DAPPLE_WRAPPER(fts_read, FTSENT* wrapped_fts_read(FTS* fts)) {
  return is_ours(fts) ? read_next(fts) : NEXT(fts_read)(fts);
}

DAPPLE_WRAPPER(fts_children, FTSENT* wrapped_fts_children(FTS* fts, int options)) {
  if (!is_ours(fts)) return NEXT(fts_children)(fts, options);
  errno = options == 0 || options == FTS_NAMEONLY ? 0 : EINVAL;
  if (errno != 0 || fts->fts_cur == nullptr || has(fts, FTS_STOP)) return nullptr;
  if (fts->fts_cur->fts_info == FTS_INIT) return fts->fts_cur->fts_link;
  if (fts->fts_cur->fts_info != FTS_D) return nullptr;
  free_list(fts->fts_child);
  return fts->fts_child = entries_of(fts, fts->fts_cur);
}

DAPPLE_WRAPPER(fts_close, int wrapped_fts_close(FTS* fts)) {
  return is_ours(fts) ? end(fts) : NEXT(fts_close)(fts);
}

DAPPLE_WRAPPER_ALIAS(fts64_open, fts_open, FTS* wrapped_fts64_open(char* const* names, int options, Order order));
DAPPLE_WRAPPER_ALIAS(fts64_read, fts_read, FTSENT* wrapped_fts64_read(FTS* fts));
DAPPLE_WRAPPER_ALIAS(fts64_children, fts_children, FTSENT* wrapped_fts64_children(FTS* fts, int options));
DAPPLE_WRAPPER_ALIAS(fts64_close, fts_close, int wrapped_fts64_close(FTS* fts));

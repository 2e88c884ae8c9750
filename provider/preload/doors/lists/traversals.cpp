// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// ftw(), nftw() and fts_open(). The C library goes through the folders by itself, so it gets a path that leads to the
// tree through our descriptor of the tree's folder: /proc/self/fd/N/sys/class/infiniband. The program sees the path
// without these first names.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cassert>
#include <new>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/place.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

static_assert(sizeof(FTSENT) == sizeof(FTSENT64) && sizeof(struct stat) == sizeof(struct stat64));

struct LongPath {
  size_t front = 0;  // the size of the names that the program does not see
  char path[kPathSize + 32];
};

// False for a path that goes on unchanged. A relative one does: the working directory really lies in the tree.
bool lengthen(const char* path, bool follow, LongPath& to) {
  if (path == nullptr || path[0] != '/') return false;
  if (!may_lead_to_tree(AT_FDCWD, path)) return false;
  const Place place(AT_FDCWD, path, follow, false);
  if (place.where != Place::Where::kTree && place.where != Place::Where::kKernel) return false;
  const char* shown = place.walked.path;
  if (place.where == Place::Where::kTree) {
    to.front = static_cast<size_t>(snprintf(to.path, sizeof to.path, "/proc/self/fd/%d", place.root));
    // The program's own words, if they lead there in the tree's folder, too.
    if (strlen(path) < kPathSize && faccessat(place.root, path + 1, F_OK, AT_SYMLINK_NOFOLLOW) == 0) shown = path;
  }
  strcpy(to.path + to.front, shown);
  return true;
}

// The functions have no argument for the caller.
thread_local size_t visited_front = 0;
thread_local __ftw_func_t visit = nullptr;
thread_local __nftw_func_t visit_with_base = nullptr;

int visit_shown(const char* path, const struct stat* status, int type) {
  return visit(path + visited_front, status, type);
}

int visit_shown_with_base(const char* path, const struct stat* status, int type, FTW* place) {
  FTW shown = *place;
  shown.base -= static_cast<int>(visited_front);
  return visit_with_base(path + visited_front, status, type, &shown);
}

// Sets a value as long as it exists: the program's function may start another traversal.
template <class Value>
class Meanwhile {
 public:
  Meanwhile(Value& value, Value now) : value_(value), before_(value) { value_ = now; }
  ~Meanwhile() { value_ = before_; }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  Value& value_;
  Value before_;
};

// An fts_open() with a path in the tree. The program sees the present entry without the first names, and the C library
// with them.
struct Stream {
  Stream* next = nullptr;
  FTS* fts = nullptr;
  FTSENT* entry = nullptr;
  size_t front = 0;  // of all paths in the tree: they begin with the same descriptor
  bool is_short = false;
  bool has_short_access = false;

  bool begins(const char* path) const {
    return strncmp(path, "/proc/self/fd/", 14) == 0 && strnlen(path, front + 1) > front && path[front] == '/';
  }
  void shorten(FTSENT* now) {
    assert(!is_short && front > 0);
    entry = now;
    is_short = now != nullptr && begins(now->fts_path);
    has_short_access = is_short && begins(now->fts_accpath);
    if (!is_short) return;
    now->fts_path += front;
    now->fts_pathlen = static_cast<unsigned short>(now->fts_pathlen - front);
    if (has_short_access) now->fts_accpath += front;
  }
  void restore() {
    if (!is_short) return;
    assert(entry != nullptr);
    entry->fts_path -= front;
    entry->fts_pathlen = static_cast<unsigned short>(entry->fts_pathlen + front);
    if (has_short_access) entry->fts_accpath -= front;
    is_short = false;
  }
};

constinit pthread_mutex_t streams_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<Stream*> streams = nullptr;

Stream* stream_of(const FTS* fts) {
  if (streams.load(std::memory_order_relaxed) == nullptr) return nullptr;
  pthread_mutex_lock(&streams_mutex);
  Stream* found = streams.load();
  while (found != nullptr && found->fts != fts) found = found->next;
  pthread_mutex_unlock(&streams_mutex);
  return found;
}

void keep(Stream* stream) {
  pthread_mutex_lock(&streams_mutex);
  stream->next = streams.load();
  streams = stream;
  pthread_mutex_unlock(&streams_mutex);
}

void drop(Stream* stream) {
  pthread_mutex_lock(&streams_mutex);
  if (streams.load() == stream) {
    streams = stream->next;
  } else {
    Stream* before = streams.load();
    assert(before != nullptr);
    while (before->next != stream) before = before->next;
    before->next = stream->next;
  }
  pthread_mutex_unlock(&streams_mutex);
  delete stream;
}

using FtsOrder = int (*)(const FTSENT**, const FTSENT**);

// fts_open() copies the names. `longer` has as many entries as there are names.
FTS* open_long(char* const* names, size_t count, LongPath* longer, const char** all, int options, FtsOrder order) {
  const bool follow = (options & (FTS_LOGICAL | FTS_COMFOLLOW)) != 0;
  size_t front = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_longer = lengthen(names[i], follow, longer[i]);
    if (is_longer && longer[i].front > front) front = longer[i].front;
    all[i] = is_longer ? longer[i].path : names[i];
  }
  all[count] = nullptr;
  FTS* const fts = NEXT(fts_open)(const_cast<char* const*>(all), options, order);
  Stream* const stream = fts == nullptr || front == 0 ? nullptr : new (std::nothrow) Stream;
  if (stream != nullptr) {
    stream->fts = fts;
    stream->front = front;
    keep(stream);
  }
  return fts;
}

bool any_leads_to_tree(char* const* names, size_t& count) {
  bool any = false;
  for (count = 0; names[count] != nullptr; ++count) {
    any |= names[count][0] == '/' && may_lead_to_tree(AT_FDCWD, names[count]);
  }
  return any;
}

}  // namespace

DAPPLE_WRAPPER(ftw, int wrapped_ftw(const char* path, __ftw_func_t function, int folders)) {
  LongPath longer;
  if (!lengthen(path, true, longer)) return NEXT(ftw)(path, function, folders);
  const Meanwhile front(visited_front, longer.front);
  const Meanwhile<__ftw_func_t> visiting(visit, function);
  return NEXT(ftw)(longer.path, visit_shown, folders);
}
DAPPLE_WRAPPER_ALIAS(ftw64, ftw, int wrapped_ftw64(const char* path, __ftw_func_t function, int folders));

DAPPLE_WRAPPER(nftw, int wrapped_nftw(const char* path, __nftw_func_t function, int folders, int flags)) {
  LongPath longer;
  if (!lengthen(path, (flags & FTW_PHYS) == 0, longer)) return NEXT(nftw)(path, function, folders, flags);
  const Meanwhile front(visited_front, longer.front);
  const Meanwhile<__nftw_func_t> visiting(visit_with_base, function);
  return NEXT(nftw)(longer.path, visit_shown_with_base, folders, flags);
}
DAPPLE_WRAPPER_ALIAS(nftw64, nftw,
                     int wrapped_nftw64(const char* path, __nftw_func_t function, int folders, int flags));

DAPPLE_WRAPPER(fts_open, FTS* wrapped_fts_open(char* const* names, int options, FtsOrder order)) {
  size_t count;
  if (!any_leads_to_tree(names, count)) return NEXT(fts_open)(names, options, order);
  auto* longer = new (std::nothrow) LongPath[count];
  auto** all = new (std::nothrow) const char*[count + 1];
  FTS* const fts = longer != nullptr && all != nullptr ? open_long(names, count, longer, all, options, order) : nullptr;
  if (longer == nullptr || all == nullptr) errno = ENOMEM;
  delete[] longer;
  delete[] all;
  return fts;
}

DAPPLE_WRAPPER(fts_read, FTSENT* wrapped_fts_read(FTS* fts)) {
  Stream* const stream = stream_of(fts);
  if (stream == nullptr) return NEXT(fts_read)(fts);
  stream->restore();
  FTSENT* const entry = NEXT(fts_read)(fts);
  stream->shorten(entry);
  return entry;
}

DAPPLE_WRAPPER(fts_children, FTSENT* wrapped_fts_children(FTS* fts, int options)) {
  Stream* const stream = stream_of(fts);
  if (stream == nullptr) return NEXT(fts_children)(fts, options);
  FTSENT* const present = stream->is_short ? stream->entry : nullptr;
  stream->restore();
  FTSENT* const children = NEXT(fts_children)(fts, options);
  const int error = errno;
  if (present != nullptr) stream->shorten(present);
  errno = error;
  return children;
}

DAPPLE_WRAPPER(fts_close, int wrapped_fts_close(FTS* fts)) {
  Stream* const stream = stream_of(fts);
  if (stream != nullptr) {
    stream->restore();
    drop(stream);
  }
  return NEXT(fts_close)(fts);
}

DAPPLE_WRAPPER_ALIAS(fts64_open, fts_open, FTS* wrapped_fts64_open(char* const* names, int options, FtsOrder order));
DAPPLE_WRAPPER_ALIAS(fts64_read, fts_read, FTSENT* wrapped_fts64_read(FTS* fts));
DAPPLE_WRAPPER_ALIAS(fts64_children, fts_children, FTSENT* wrapped_fts64_children(FTS* fts, int options));
DAPPLE_WRAPPER_ALIAS(fts64_close, fts_close, int wrapped_fts64_close(FTS* fts));

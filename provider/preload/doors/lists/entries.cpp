// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that read an open folder. Only a shared folder has more entries than those of the kernel.
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <cassert>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/shared_folder.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

static_assert(sizeof(dirent) == sizeof(dirent64) && offsetof(dirent, d_name) == offsetof(dirent64, d_name));

// The C library's own entry lives in the stream, until the next call for this stream. Ours lives until this thread asks
// for the next one: below such an entry are no other shared folders.
thread_local dirent64 last_entry;

dirent* next_of_stream(DIR* stream) {
  const int before = errno;
  errno = 0;
  dirent* const entry = NEXT(readdir)(stream);
  if (entry != nullptr || errno != 0) {
    if (entry != nullptr) errno = before;
    return entry;
  }
  errno = before;
  return next_shared_entry(dirfd(stream), last_entry) ? reinterpret_cast<dirent*>(&last_entry) : nullptr;
}

bool is_ours(DIR* stream) {
  return stream != nullptr && maybe_ours(dirfd(stream));
}

using ReadInto = int (*)(DIR* stream, dirent* entry, dirent** result);

}  // namespace

DAPPLE_WRAPPER(readdir, dirent* wrapped_readdir(DIR* stream)) {
  return is_ours(stream) ? next_of_stream(stream) : NEXT(readdir)(stream);
}

// Old programs call this one.
DAPPLE_WRAPPER(readdir_r, int wrapped_readdir_r(DIR* stream, dirent* entry, dirent** result)) {
  static constinit ReadInto read_into = nullptr;
  const int error = next(read_into, "readdir_r")(stream, entry, result);
  if (error != 0 || *result != nullptr || !is_ours(stream)) return error;
  dirent64 more;
  if (!next_shared_entry(dirfd(stream), more)) return 0;
  memcpy(entry, &more, more.d_reclen);
  *result = entry;
  return 0;
}

DAPPLE_WRAPPER(getdents64, ssize_t wrapped_getdents64(int fd, void* buffer, size_t size)) {
  const ssize_t result = NEXT(getdents64)(fd, buffer, size);
  if (result != 0 || !maybe_ours(fd)) return result;
  size_t used = 0;
  dirent64 entry;
  while (size - used >= sizeof entry && next_shared_entry(fd, entry)) {
    memcpy(static_cast<char*>(buffer) + used, &entry, entry.d_reclen);
    used += entry.d_reclen;
    assert(used <= size);
  }
  return static_cast<ssize_t>(used);
}

DAPPLE_WRAPPER(rewinddir, void wrapped_rewinddir(DIR* stream)) {
  if (is_ours(stream)) rewind_shared_folder(dirfd(stream));
  NEXT(rewinddir)(stream);
}

DAPPLE_WRAPPER(seekdir, void wrapped_seekdir(DIR* stream, long place)) {
  if (is_ours(stream)) rewind_shared_folder(dirfd(stream));
  NEXT(seekdir)(stream, place);
}

DAPPLE_WRAPPER(closedir, int wrapped_closedir(DIR* stream)) {
  if (is_ours(stream)) forget(dirfd(stream));
  return NEXT(closedir)(stream);
}

DAPPLE_WRAPPER_ALIAS(readdir64, readdir, dirent* wrapped_readdir64(DIR* stream));
DAPPLE_WRAPPER_ALIAS(readdir64_r, readdir_r, int wrapped_readdir64_r(DIR* stream, dirent* entry, dirent** result));

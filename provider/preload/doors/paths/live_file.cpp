// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// lseek() and pread(). A program that keeps a file of sysfs open and reads it from its beginning again gets the present
// value; dappled writes a new file for each value, so the descriptor gets the new file.
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "provider/preload/doors/paths/libc_names.hpp"
#include "provider/preload/doors/paths/overflow.hpp"
#include "provider/preload/doors/paths/shared_folder.hpp"
#include "provider/preload/doors/paths/tree_file.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/wrapper.hpp"

using namespace dapple::doors;

namespace {

[[gnu::noinline]] void begin_again(int fd) {
  Door door;
  if (!find(fd, door)) return;
  if (door.kind == Kind::kSharedFolder) rewind_shared_folder(fd);
  if (door.kind == Kind::kTreeFile) renew_tree_file(fd);
}

void read_from(int fd, off_t offset) {
  if (offset == 0 && maybe_ours(fd)) begin_again(fd);
}

}  // namespace

DAPPLE_WRAPPER(lseek, off_t wrapped_lseek(int fd, off_t offset, int whence)) {
  if (whence == SEEK_SET) read_from(fd, offset);
  return NEXT(lseek)(fd, offset, whence);
}

DAPPLE_WRAPPER(pread, ssize_t wrapped_pread(int fd, void* buffer, size_t size, off_t offset)) {
  read_from(fd, offset);
  return NEXT(pread)(fd, buffer, size, offset);
}

DAPPLE_WRAPPER(__pread_chk, ssize_t wrapped_pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t room)) {
  if (size > room) stop_overflow();
  return wrapped_pread(fd, buffer, size, offset);
}

// On 64-bit machines these functions are the same.
DAPPLE_WRAPPER_ALIAS(lseek64, lseek, off_t wrapped_lseek64(int fd, off_t offset, int whence));
DAPPLE_WRAPPER_ALIAS(pread64, pread, ssize_t wrapped_pread64(int fd, void* buffer, size_t size, off_t offset));
DAPPLE_WRAPPER_ALIAS(__pread64_chk, __pread_chk,
                     ssize_t wrapped_pread64_chk(int fd, void* buffer, size_t size, off_t offset, size_t room));

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A library to preload: the calls of libraries before it find pages of 64 KiB, as kernels for ppc64le and some for
// arm64 have them.
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const uintptr_t large = 65536;

static uintptr_t rounded_up(uintptr_t size) {
  return (size + large - 1) & ~(large - 1);
}

long sysconf(int name) {
  long (*const next)(int) = dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_PAGESIZE ? (long)large : next(name);
}

void* mmap(void* memory, size_t size, int protection, int flags, int file, off_t offset) {
  void* (*const next)(void*, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  if (memory != NULL || !(flags & MAP_ANONYMOUS)) return next(memory, size, protection, flags, file, offset);
  char* const found = next(NULL, rounded_up(size) + large, protection, flags, file, offset);
  return found == MAP_FAILED ? found : (void*)rounded_up((uintptr_t)found);
}

int mprotect(void* memory, size_t size, int protection) {
  int (*const next)(void*, size_t, int) = dlsym(RTLD_NEXT, "mprotect");
  if ((uintptr_t)memory % large == 0) return next(memory, rounded_up(size), protection);
  errno = EINVAL;
  return -1;
}

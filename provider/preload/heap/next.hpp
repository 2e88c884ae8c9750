// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that this library interposes.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#include <atomic>

#include "provider/preload/symbols/symbol_table.hpp"

namespace dapple::heap {

// The next function of this name in the order of look-up, as of RTLD_NEXT. dlsym() may call malloc(), so the libraries'
// tables are read directly, at the first call.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  Function* get() {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function != nullptr) [[likely]]
      return function;
    function = find();
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

 private:
  [[gnu::noinline, gnu::cold]] Function* find() const {
    bool is_behind = false;
    for (const link_map* library = _r_debug.r_map; library != nullptr; library = library->l_next) {
      if (is_behind) {
        if (void* found = preload::SymbolTable(*library).find(name_)) return reinterpret_cast<Function*>(found);
      }
      // The linker gives each library a _DYNAMIC of its own.
      is_behind = is_behind || library->l_ld == _DYNAMIC;
    }
    // The C library has all of its functions, and a program that calls librdmacm's is linked with it.
    abort();
  }

  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

extern Next<void*(size_t)> next_malloc;
extern Next<void(void*)> next_free;
extern Next<void*(size_t, size_t)> next_calloc;
extern Next<void*(void*, size_t)> next_realloc;
extern Next<void*(size_t, size_t)> next_memalign;
extern Next<int(void**, size_t, size_t)> next_posix_memalign;
extern Next<void*(size_t, size_t)> next_aligned_alloc;
extern Next<void*(size_t)> next_valloc;
extern Next<void*(size_t)> next_pvalloc;
extern Next<int(void*, size_t)> next_munmap;
extern Next<void*(void*, size_t, int, int, int, off_t)> next_mmap;
extern Next<void*(void*, size_t, size_t, int, ...)> next_mremap;
extern Next<int(void*, size_t, int)> next_madvise;
extern Next<int(void*, size_t, int)> next_mprotect;
extern Next<int(const void*)> next_shmdt;
extern Next<int(void*)> next_dlclose;

}  // namespace dapple::heap

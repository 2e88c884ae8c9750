// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// `new (std::nothrow)` of the libraries and programs that have this one. That of libstdc++ throws and catches an
// exception if there is no memory. If there is none for the exception either, it ends the program.
#include <stdlib.h>

#include <new>

// A sanitizer compares the functions that allocate and free a block.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}

void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}

#endif

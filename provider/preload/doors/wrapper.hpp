// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A function that stands before one of the C library's. It has a name of its own in C++, so that the C library's
// headers with their macros and redirections are of no concern. Each asks first whether the call concerns a door, and
// otherwise passes it on as it is; every one may be called from a signal handler and in a child of vfork() if the one
// behind it may.
#ifndef DAPPLE_PROVIDER_PRELOAD_DOORS_WRAPPER_HPP
#define DAPPLE_PROVIDER_PRELOAD_DOORS_WRAPPER_HPP

// Declares: DAPPLE_WRAPPER(close, int wrapped_close(int fd)); the definition follows as that of wrapped_close().
#define DAPPLE_WRAPPER(name, declaration)                               \
  extern "C" [[gnu::visibility("default")]] declaration __asm__(#name); \
  extern "C" declaration

// Another name of one that is defined in the same file.
#define DAPPLE_WRAPPER_ALIAS(name, target, declaration) \
  extern "C" [[gnu::visibility("default"), gnu::alias(#target)]] declaration __asm__(#name)

#endif  // DAPPLE_PROVIDER_PRELOAD_DOORS_WRAPPER_HPP

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A function that interposes a function of the C library. It has its own name in C++, so that the macros and
// redirections of the C library's headers do not matter. Each wrapper first tests whether the call concerns a door, and
// otherwise passes the call on unchanged. It may be called from a signal handler and in a child of vfork() if the
// function behind it may.
#pragma once

// Declares: DAPPLE_WRAPPER(close, int wrapped_close(int fd)); the definition follows as that of wrapped_close().
// NOLINTBEGIN(bugprone-macro-parentheses): declarations
#define DAPPLE_WRAPPER(name, declaration)                               \
  extern "C" [[gnu::visibility("default")]] declaration __asm__(#name); \
  extern "C" declaration

// Another name of a wrapper that is defined in the same file.
#define DAPPLE_WRAPPER_ALIAS(name, target, declaration) \
  extern "C" [[gnu::visibility("default"), gnu::alias(#target)]] declaration __asm__(#name)
// NOLINTEND(bugprone-macro-parentheses)

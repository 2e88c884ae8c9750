// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// The headers declare the functions without visibility, the build hides what does not ask.
#define DAPPLE_EXPORT extern "C" __attribute__((visibility("default")))

// After the definition of a function of libdat.so.1, which has each under two version nodes. The linker takes a node
// for a name that has several only from the assembler.
#if DAPPLE_DAT_MAJOR == 1
// NOLINTBEGIN(bugprone-macro-parentheses): names
#define DAPPLE_EXPORT_AS(name, alias_name, version)                                            \
  extern "C" __typeof__(name) alias_name __attribute__((alias(#name), visibility("default"))); \
  __asm__(".symver " #alias_name ", " version);
#define DAPPLE_EXPORT_VERSIONS(name)                         \
  DAPPLE_EXPORT_AS(name, name##_for_sunw, #name "@SUNW_1.1") \
  DAPPLE_EXPORT_AS(name, name##_for_ofed, #name "@@DAT_1.2")
// NOLINTEND(bugprone-macro-parentheses)
#else
#define DAPPLE_EXPORT_VERSIONS(name)
#endif

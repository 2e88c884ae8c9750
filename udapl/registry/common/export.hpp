// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// The headers declare the functions without visibility, and the build hides every other symbol.
#define DAPPLE_EXPORT extern "C" __attribute__((visibility("default")))

// Follows the definition of a function of libdat.so.1, which has each function under two version nodes. For a name with
// several nodes the linker needs the assembler's directive.
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

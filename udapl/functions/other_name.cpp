// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A further name of a provider: a library that passes every call on to the library with the first name. A symbolic link
// would not do: ldconfig and the loader know a library by its SONAME, and programs that are linked with it by its
// version node.
#include <cstdarg>

#include "udapl/functions/dat.hpp"

#if DAPPLE_DAT_MAJOR == 1
#define DAPPLE_FIRST_NODE "DAPL_CMA_1.2"
#else
#define DAPPLE_FIRST_NODE "DAPL_CMA_2.0"
#endif

#define DAPPLE_EXPORT extern "C" [[gnu::visibility("default")]]

__asm__(".symver first_init, dat_provider_init@" DAPPLE_FIRST_NODE);
__asm__(".symver first_fini, dat_provider_fini@" DAPPLE_FIRST_NODE);
DAPPLE_EXPORT void first_init(const DAT_PROVIDER_INFO* info, const char* params);
DAPPLE_EXPORT void first_fini(const DAT_PROVIDER_INFO* info);

DAPPLE_EXPORT void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* params) {
  first_init(info, params);
}

DAPPLE_EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  first_fini(info);
}

#if DAPPLE_DAT_MAJOR >= 2
__asm__(".symver first_extensions, dapl_extensions@" DAPPLE_FIRST_NODE);
DAPPLE_EXPORT DAT_RETURN first_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

DAPPLE_EXPORT DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args) {
  return first_extensions(handle, op, args);
}
#endif

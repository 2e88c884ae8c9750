// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For a test that leaves objects on purpose: AddressSanitizer looks for no leaks. Include it once in the program.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
extern "C" [[gnu::visibility("default")]] const char*
__asan_default_options() {  // NOLINT(bugprone-reserved-identifier,misc-definitions-in-headers)
  return "detect_leaks=0";
}
#endif

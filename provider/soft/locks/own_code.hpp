// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// The linker's names for the ends of this library.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT(bugprone-reserved-identifier)
[[gnu::visibility("hidden")]] extern const char _end[];          // NOLINT(bugprone-reserved-identifier)
}

namespace dapple::soft {

inline bool is_own_code(const void* code) {
  return code >= __ehdr_start && code < _end;
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdlib>
#include <cstring>

namespace dapple {

// The variables of dapple-run that ask for explanations. The functions below read the environment once.
inline bool is_asked_for(const char* variable) noexcept {
  const char* value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

// --explain: each error, also one that a right program may get.
inline bool explains_all() noexcept {
  static const bool wanted = is_asked_for("DAPPLE_EXPLAIN");
  return wanted;
}

// --explain or --check: the libraries above verbs give the reasons of their errors.
inline bool explains() noexcept {
  static const bool wanted = explains_all() || is_asked_for("DAPPLE_CHECK_RECORDS");
  return wanted;
}

}  // namespace dapple

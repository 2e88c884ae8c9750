// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reason why a function of libdapple refuses its arguments, for the report of dapple-run --explain and --check.
// Each thread has its own, which its next refusal replaces.
#pragma once

namespace dapple::provider {

// Returns `error`. The reason is a sentence, and behind a line break the remedy.
[[gnu::format(printf, 2, 3), nodiscard]] int refuse(int error, const char* reason, ...) noexcept;

struct Refusal {
  int error = 0;  // 0: none
  char text[256] = {};
};

// The last refusal of this thread, which is forgotten.
Refusal take_refusal() noexcept;

}  // namespace dapple::provider

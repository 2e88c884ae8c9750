// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kinds of reports, which a file of suppressions may name. dapple-check(1) explains each of them;
// tests/checks/report-kinds compares.
#pragma once

#include <string_view>

namespace dapple::soft::check {

inline constexpr std::string_view kKinds[] = {
    "ah-in-use",           "changed-send-buffer",   "cq-may-overrun",       "cq-overrun",
    "deregistered-key",    "dropped-message",       "ended-window",         "failed-bind",
    "failed-connection",   "failed-invalidation",   "failed-request",       "foreign-domain",
    "foreign-window",      "freed-context",         "freed-memory",         "hang",
    "left-object",         "lost-at-reset",         "lost-notification",    "memory-in-use",
    "missing-call",        "missing-fence",         "missing-right",        "missing-sync",
    "more-than-asked",     "out-of-bounds",         "outstanding-sends",    "overlapping-writes",
    "overwritten-message", "post-after-disconnect", "post-in-error",        "racing-access",
    "receiver-not-ready",  "refused-call",          "refused-request",      "shared-buffer",
    "small-receive",       "solicited-only",        "unacknowledged-event", "unarmed-cq",
    "unarmed-srq-limit",   "unknown-key",           "unmapped-memory",      "unpolled-cq",
    "unsignaled-request",  "unsupported-request",   "used-after-destroy",   "zero-hop-limit",
};

inline bool is_kind(std::string_view word) {
  for (const std::string_view kind : kKinds) {
    if (kind == word) return true;
  }
  return false;
}

}  // namespace dapple::soft::check

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/refusal.hpp"

#include <cinttypes>
#include <cstdio>

#include "ibverbs-glue/explains.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/log.hpp"

namespace dapple::udapl {

namespace {

thread_local char kept[160];

}  // namespace

const char* kept_refusal() {
  return kept;
}

void forget_refusal() {
  kept[0] = 0;
}

void log_refused(const Ia& ia, const char* what, int64_t value, const char* why) {
  if (explains()) {
    std::snprintf(kept, sizeof kept, "%s is %" PRId64 ": %s", what, value, why);
    return;
  }
  log_error("IA %s: %s %" PRId64 " is refused: %s", ia.name().c_str(), what, value, why);
}

bool within(const Ia& ia, const char* what, uint64_t value, uint64_t limit) {
  if (value <= limit) return true;
  if (explains()) {
    std::snprintf(kept, sizeof kept, "%s is %" PRIu64 ": the limit is %" PRIu64, what, value, limit);
    return false;
  }
  log_error("IA %s: %s %" PRIu64 " is refused: the limit is %" PRIu64, ia.name().c_str(), what, value, limit);
  return false;
}

}  // namespace dapple::udapl

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

struct Kept {
  char text[160];
  bool has_value;
};

thread_local Kept kept;

}  // namespace

void expect(const char* why) {
  if (!explains()) return;
  std::snprintf(kept.text, sizeof kept.text, "%s", why);
  kept.has_value = false;
}

void expect_at_most(uint64_t limit) {
  if (!explains()) return;
  std::snprintf(kept.text, sizeof kept.text, "the limit is %" PRIu64, limit);
  kept.has_value = false;
}

void expect_of(const char* what, int64_t value, const char* why) {
  if (!explains()) return;
  std::snprintf(kept.text, sizeof kept.text, "%s is %" PRId64 ": %s", what, value, why);
  kept.has_value = true;
}

tl::unexpected<Error> refuse(Subtype argument, const char* why) {
  expect(why);
  return fail(Type::kInvalidParameter, argument);
}

tl::unexpected<Error> refuse_above(Subtype argument, uint64_t limit) {
  expect_at_most(limit);
  return fail(Type::kInvalidParameter, argument);
}

const char* kept_refusal() {
  return kept.text;
}

bool kept_has_value() {
  return kept.has_value;
}

void forget_refusal() {
  kept = {};
}

void log_refused(const Ia& ia, const char* what, int64_t value, const char* why) {
  if (explains()) return expect_of(what, value, why);
  log_error("IA %s: %s %" PRId64 " is refused: %s", ia.name().c_str(), what, value, why);
}

bool within(const Ia& ia, const char* what, uint64_t value, uint64_t limit) {
  if (value <= limit) return true;
  if (explains()) {
    std::snprintf(kept.text, sizeof kept.text, "%s is %" PRIu64 ": the limit is %" PRIu64, what, value, limit);
    kept.has_value = true;
    return false;
  }
  log_error("IA %s: %s %" PRIu64 " is refused: the limit is %" PRIu64, ia.name().c_str(), what, value, limit);
  return false;
}

}  // namespace dapple::udapl

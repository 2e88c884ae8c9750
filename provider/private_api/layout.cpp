// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/layout.hpp"

#include <pthread.h>
#include <string.h>

namespace dapple::provider {
namespace {

constexpr int8_t kNone = -1;
constexpr size_t kNumColumns = 5;

struct Row {
  int8_t index[kNumColumns];
};

constexpr Row kRows[] = {
#define DAPPLE_OPERATION(name, ...) {{__VA_ARGS__}},
#include "provider/private_api/operations.inc"
#undef DAPPLE_OPERATION
};

constexpr size_t count_in_column(size_t column) {
  size_t count = 0;
  for (const Row& row : kRows) count += row.index[column] != kNone;
  return count;
}

// The table is sorted by name in every release, so each column counts up without a gap.
constexpr bool counts_up(size_t column) {
  int next = 0;
  for (const Row& row : kRows) {
    if (row.index[column] == kNone) continue;
    if (row.index[column] != next) return false;
    ++next;
  }
  return true;
}

static_assert(counts_up(0) && counts_up(1) && counts_up(2) && counts_up(3) && counts_up(4));
static_assert(count_in_column(0) == 76);
static_assert(count_in_column(1) == 79);
static_assert(count_in_column(2) == 81);
static_assert(count_in_column(3) == 83);
static_assert(count_in_column(4) == 93);

// A context has one mutex, which has 40 bytes on x86-64 and 48 on arm64.
constexpr size_t kMutexGrowth = sizeof(pthread_mutex_t) - 40;

constexpr PublicSymbols kSince36 = {true, false, false, false};
constexpr PublicSymbols kSince62 = {true, true, false, false};
constexpr PublicSymbols kSince64 = {true, true, true, false};
constexpr PublicSymbols kSince65 = {true, true, true, true};

}  // namespace

const Layout kLayouts[kNumLayouts] = {
    {"36 to 56", "IBVERBS_PRIVATE_34", kSince36, 648 + kMutexGrowth, count_in_column(0), 0},
    {"57 and 58", "IBVERBS_PRIVATE_57", kSince36, 648 + kMutexGrowth, count_in_column(0), 0},
    {"59 to 61", "IBVERBS_PRIVATE_59", kSince36, 672 + kMutexGrowth, count_in_column(1), 1},
    {"62 and 63", "IBVERBS_PRIVATE_59", kSince62, 680 + kMutexGrowth, count_in_column(2), 2},
    {"64", "IBVERBS_PRIVATE_64", kSince64, 696 + kMutexGrowth, count_in_column(3), 3},
    {"65", "IBVERBS_PRIVATE_65", kSince65, 696 + kMutexGrowth, count_in_column(4), 4},
};

int Layout::index(Operation operation) const {
  return kRows[static_cast<size_t>(operation)].index[column];
}

const Layout* find_layout(const char* symbol_version, const PublicSymbols& symbols) {
  for (const Layout& layout : kLayouts) {
    if (strcmp(layout.symbol_version, symbol_version) == 0 && layout.symbols == symbols) return &layout;
  }
  return nullptr;
}

}  // namespace dapple::provider

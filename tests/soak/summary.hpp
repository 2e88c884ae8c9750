// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "tests/soak/news.hpp"
#include "tests/soak/plan.hpp"

namespace dapple::soak {

// Sums of both workers of all pairs.
struct Sums {
  uint64_t whole = 0, others = 0, transfers = 0, checked = 0;
};
Sums sums_of(const Shared& shared, size_t pairs);

// Prints a row for each kind and group, and how connections ended.
void print_summary(const Shared& shared, const std::vector<PairPlan>& plans);

}  // namespace dapple::soak

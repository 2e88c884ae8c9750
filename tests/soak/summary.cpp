// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/summary.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace dapple::soak {
namespace {

struct Row {
  uint64_t transfers = 0, checked = 0;
  uint64_t ends[kEndKinds] = {};

  void add(const PairNews& pair) {
    for (const WorkerNews& worker : pair.workers) {
      transfers += worker.transfers;
      checked += worker.checked;
      for (size_t i = 0; i < kEndKinds; i++) ends[i] += worker.ends[i];
    }
  }
};

}  // namespace

Sums sums_of(const Shared& shared, size_t pairs) {
  Row all;
  for (size_t i = 0; i < pairs; i++) all.add(shared.pairs[i]);
  Sums sums = {all.ends[static_cast<size_t>(End::kWhole)], 0, all.transfers, all.checked};
  for (const uint64_t count : all.ends) sums.others += count;
  sums.others -= sums.whole;
  return sums;
}

void print_summary(const Shared& shared, const std::vector<PairPlan>& plans) {
  std::map<std::pair<Kind, Group>, Row> rows;
  for (size_t i = 0; i < plans.size(); i++) rows[{plans[i].kind, plans[i].group}].add(shared.pairs[i]);
  fmt::print("{:<6} {:<8} {:>10} {:>9}  ends of connections, counted at both sides\n", "kind", "group", "transfers",
             "MiB");
  for (const auto& [key, row] : rows) {
    std::string ends;
    for (size_t i = 0; i < kEndKinds; i++) {
      if (row.ends[i] != 0) ends += fmt::format("{} {}, ", row.ends[i], name_of(static_cast<End>(i)));
    }
    if (!ends.empty()) ends.resize(ends.size() - 2);
    fmt::print("{:<6} {:<8} {:>10} {:>9}  {}\n", name_of(key.first), name_of(key.second), row.transfers,
               row.checked >> 20, ends);
  }
}

}  // namespace dapple::soak

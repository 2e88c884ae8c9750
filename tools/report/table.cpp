// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dapple {

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  const auto shown = [](const std::string& word) { return word.empty() ? std::string("-") : word; };
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown(row[i]).size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += i + 1 == row.size() ? shown(row[i]) : fmt::format("{:<{}}  ", shown(row[i]), widths[i]);
    }
    out += '\n';
  }
  return out;
}

}  // namespace dapple

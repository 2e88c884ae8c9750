// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/trace_lines.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace dapple::picture {
namespace {

// A double does not hold the nanoseconds of a time since 1970, so this reads the digits. 0 without a time.
int64_t time_of(std::string_view line) {
  constexpr std::string_view kName = "\"time\":";
  constexpr int64_t kMaxSeconds = 9'000'000'000;
  const size_t at = line.find(kName);
  if (at == std::string_view::npos) return 0;
  line.remove_prefix(at + kName.size());
  int64_t seconds = 0;
  const char* const end = line.data() + line.size();
  const auto [point, error] = std::from_chars(line.data(), end, seconds);
  if (error != std::errc() || seconds < 0 || seconds > kMaxSeconds) return 0;
  int64_t nanoseconds = 0;
  const char* digit = point;
  if (digit < end && *digit == '.') digit++;
  for (int i = 0; i < 9; i++) {
    const bool is_digit = digit < end && *digit >= '0' && *digit <= '9';
    nanoseconds = nanoseconds * 10 + (is_digit ? *digit++ - '0' : 0);
  }
  return seconds * 1'000'000'000 + nanoseconds;
}

}  // namespace

std::string TraceLine::text(const char* name) const {
  const auto found = members.find(name);
  return found != members.end() && found->is_string() ? found->get<std::string>() : std::string();
}

uint64_t TraceLine::number(const char* name) const {
  const auto found = members.find(name);
  if (found == members.end()) return 0;
  if (found->is_number_integer()) return found->get<uint64_t>();
  if (!found->is_string()) return 0;
  const std::string& text = found->get_ref<const std::string&>();
  uint64_t value = 0;
  if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return value;
}

std::vector<TraceLine> read_trace_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read: " + strerror(errno));
  std::vector<TraceLine> lines;
  std::string text;
  for (size_t number = 1; std::getline(file, text); number++) {
    Json members = Json::parse(text, nullptr, false);
    if (!members.is_object()) {
      if (file.eof()) break;
      throw std::runtime_error(path + ":" + std::to_string(number) + " is not a line of a trace");
    }
    lines.push_back({time_of(text), std::move(members)});
  }
  if (file.bad()) throw std::runtime_error(path + " cannot be read: " + strerror(errno));
  std::stable_sort(lines.begin(), lines.end(),
                   [](const TraceLine& one, const TraceLine& other) { return one.time_ns < other.time_ns; });
  return lines;
}

}  // namespace dapple::picture

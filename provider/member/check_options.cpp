// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/check_options.hpp"

#include <charconv>
#include <climits>

namespace dapple::soft::check {
namespace {

// A whole number up to `most`.
bool number_of(std::string_view text, int most, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= most;
}

bool flag_of(std::string_view text, bool& flag) {
  int number = 0;
  if (!number_of(text, 1, number)) return false;
  flag = number != 0;
  return true;
}

bool read_word(std::string_view word, Options& options) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return false;
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "exitcode") return number_of(value, 255, options.exit_code);
  if (name == "halt_on_error") return flag_of(value, options.halt_on_error);
  if (name == "notes") return flag_of(value, options.notes);
  if (name == "strict") return flag_of(value, options.strict);
  if (name == "races") return flag_of(value, options.races);
  if (name == "delay") return number_of(value, INT_MAX, options.delay_seed.emplace());
  if (name != "log_path" && name != "suppressions") return false;
  (name == "log_path" ? options.log_path : options.suppressions) = value;
  return !value.empty();
}

}  // namespace

std::string_view read_options(std::string_view text, Options& options) {
  while (!text.empty()) {
    const size_t end = text.find_first_of(":, \t\n");
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!word.empty() && !read_word(word, options)) return word;
  }
  return {};
}

}  // namespace dapple::soft::check

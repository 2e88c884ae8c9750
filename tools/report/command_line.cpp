// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/report/command_line.hpp"

#include <cctype>
#include <charconv>

namespace dapple {
namespace {

// With texts of at most 50 characters the help fits 80 columns.
constexpr size_t kHelpColumn = 28;

// An unset variable of a script gives such a value.
std::string not_empty(const std::string& word) {
  return word.empty() ? "an empty word" : "";
}

std::string one_line(const CLI::App* app, const CLI::Error& error) {
  return app->get_name() + ": " + error.what() + "; see " + app->get_name() + " --help\n";
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  app.get_formatter()->column_width(kHelpColumn);
  app.set_help_flag("-h,--help", "Show this help and end");
  app.set_version_flag("--version", DAPPLE_VERSION, "Show the version and end");
  app.failure_message(one_line);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() > 0) option->check(not_empty);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return {};
}

std::optional<uint64_t> size_of(std::string_view text) {
  uint64_t size = 0;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), size);
  if (number.ec != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(number.ptr - text.data()));
  if (text.ends_with('B')) text.remove_suffix(text.ends_with("iB") && text.size() > 2 ? 2 : 1);
  if (text.empty()) return size;
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(text[0]))));
  if (text.size() != 1 || unit == std::string_view::npos) return {};
  const unsigned int shift = 10 * (static_cast<unsigned int>(unit) + 1);
  if (size > UINT64_MAX >> shift) return {};
  return size << shift;
}

}  // namespace dapple

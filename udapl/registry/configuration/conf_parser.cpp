// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/conf_parser.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "udapl/registry/common/log.hpp"

namespace dapple::registry {
namespace {

constexpr std::size_t kMaxName = 255;  // DAT_NAME_MAX_LENGTH includes the terminating zero
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxDigits = 9;

enum Field { kIaName, kApi, kThreadSafety, kDefault, kLibrary, kProvider, kIaParams, kPlatformParams, kFieldCount };
constexpr std::array<const char*, kFieldCount> kFieldNames = {
    "IA name", "API version",      "thread safety", "default section",
    "library", "provider version", "IA parameters", "platform parameters"};

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// The string that begins at the quote line[pos]; moves pos behind it. A backslash stands for the character after it.
std::optional<std::string> take_quoted(std::string_view line, std::size_t& pos) {
  std::string out;
  for (++pos; pos < line.size(); ++pos) {
    if (line[pos] == '"') {
      ++pos;
      return out;
    }
    if (line[pos] == '\\' && ++pos == line.size()) break;
    out += line[pos];
  }
  return std::nullopt;
}

/// The word that begins at line[pos]; moves pos behind it. A quote ends the word and belongs to it, unless escaped; a
/// backslash stays.
std::string take_word(std::string_view line, std::size_t& pos) {
  std::string out;
  bool escaped = false;
  while (pos < line.size() && !is_blank(line[pos])) {
    const char c = line[pos++];
    out += c;
    if (c == '"' && !escaped) break;
    escaped = c == '\\' && !escaped;
  }
  return out;
}

/// Decimal digits only.
std::optional<std::uint32_t> to_number(std::string_view text) {
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value;
}

std::optional<Version> to_version(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto major = to_number(text.substr(0, dot));
  const auto minor = to_number(text.substr(dot + 1));
  if (!major || !minor) return std::nullopt;
  return Version{*major, *minor};
}

/// Parses one line into an entry. Each step returns true if the line is good so far; otherwise what_ describes the
/// error.
class LineParser {
 public:
  LineParser(std::string_view line, ApiMajors wanted) : wanted_(wanted) {
    good_ = split(line) && (fields_.empty() || (read_api() && (!wanted_line_ || read_rest())));
  }

  bool good() const { return good_; }
  const std::string& what() const { return what_; }
  /// True for a good line that is not blank and belongs to this registry.
  bool has_entry() const { return good_ && wanted_line_; }
  ConfEntry& entry() { return entry_; }

 private:
  bool bad(std::string what) {
    what_ = std::move(what);
    return false;
  }
  bool bad_field(Field field, const char* expected) {
    return bad("field " + std::to_string(field + 1) + " (" + kFieldNames[field] + ") is " + quoted(fields_[field]) +
               ", not " + expected);
  }

  bool split(std::string_view line) {
    if (line.size() > kMaxLine) return bad("the line is longer than " + std::to_string(kMaxLine) + " bytes");
    if (line.find('\0') != line.npos) return bad("the line holds a NUL byte");
    for (std::size_t pos = 0; pos < line.size();) {
      if (is_blank(line[pos])) {
        ++pos;
      } else if (line[pos] == '#') {
        break;
      } else if (line[pos] == '"') {
        auto field = take_quoted(line, pos);
        if (!field) return bad("a quote is not closed");
        fields_.push_back(std::move(*field));
      } else {
        fields_.push_back(take_word(line, pos));
      }
    }
    return true;
  }

  bool read_api() {
    if (fields_.size() <= kApi) return bad_count();
    const std::string& api = fields_[kApi];
    const auto version = api.empty() ? std::nullopt : to_version(std::string_view(api).substr(1));
    if (!version || (api[0] != 'u' && api[0] != 'k')) return bad_field(kApi, "u or k and a version, such as u2.0");
    wanted_line_ = api[0] == 'u' && version->major >= wanted_.first && version->major <= wanted_.last;
    entry_.api = *version;
    return true;
  }

  bool read_rest() {
    if (fields_.size() != kFieldCount) return bad_count();
    return read_name() && read_choice(kThreadSafety, "threadsafe", "nonthreadsafe", entry_.is_thread_safe) &&
           read_choice(kDefault, "default", "nondefault", entry_.is_default) && read_library() && read_provider() &&
           read_params();
  }

  bool bad_count() {
    const std::string found = std::to_string(fields_.size());
    const std::string expected = std::to_string(kFieldCount);
    if (fields_.size() < kFieldCount)
      return bad(found + " of " + expected + " fields: no " + kFieldNames[fields_.size()]);
    return bad(found + " fields, where " + expected + " are expected");
  }

  bool read_name() {
    if (fields_[kIaName].empty() || fields_[kIaName].size() > kMaxName)
      return bad_field(kIaName, "a name of 1 to 255 bytes");
    entry_.ia_name = std::move(fields_[kIaName]);
    return true;
  }

  bool read_choice(Field field, const char* yes, const char* no, bool& choice) {
    choice = fields_[field] == yes;
    return choice || fields_[field] == no || bad_field(field, (std::string(yes) + " or " + no).c_str());
  }

  bool read_library() {
    // dlopen() takes an empty name for the program itself.
    if (fields_[kLibrary].empty()) return bad_field(kLibrary, "the name of a shared library");
    entry_.library = std::move(fields_[kLibrary]);
    return true;
  }

  bool read_provider() {
    const std::string_view text = fields_[kProvider];
    const std::size_t dot = text.find('.');
    const auto version = dot == 0 || dot == text.npos ? std::nullopt : to_version(text.substr(dot + 1));
    if (!version) return bad_field(kProvider, "a vendor and a version, such as dapl.2.0");
    entry_.provider = *version;
    entry_.provider_id = text.substr(0, dot);
    return true;
  }

  bool read_params() {
    entry_.ia_params = std::move(fields_[kIaParams]);
    entry_.platform_params = std::move(fields_[kPlatformParams]);
    return true;
  }

  ApiMajors wanted_;
  std::vector<std::string> fields_;
  ConfEntry entry_;
  std::string what_;
  bool wanted_line_ = false;
  bool good_ = false;
};

}  // namespace

std::vector<ConfEntry> parse_dat_conf(std::string_view text, ApiMajors wanted, const ReportBadLine& report) {
  std::vector<ConfEntry> entries;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    report(1, "all lines are UTF-16, not UTF-8");
    return entries;
  }
  // Some editors begin UTF-8 with a byte order mark.
  if (constexpr std::string_view kMark = "\xEF\xBB\xBF"; text.starts_with(kMark)) text.remove_prefix(kMark.size());
  unsigned number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);

    LineParser parser(line, wanted);
    if (!parser.good()) report(number, parser.what());
    if (parser.has_entry()) {
      entries.push_back(std::move(parser.entry()));
      entries.back().line = number;
    }
  }
  return entries;
}

}  // namespace dapple::registry

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/profile.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "provider/face/identity/profile_keys.hpp"

namespace dapple::face {
namespace {

// A profile's name is its file's name without the folder and the ending.
void set_profile_name(std::string_view name, Identity& identity) {
  constexpr std::string_view kEnding = ".profile";
  if (const size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  if (name.ends_with(kEnding)) name.remove_suffix(kEnding.size());
  char(&to)[soft::kAttributeSize] = identity.attributes.profile;
  memset(to, 0, sizeof to);
  std::copy_n(name.begin(), std::min(name.size(), sizeof to - 1), to);
}

std::string_view without_comment(std::string_view line) {
  for (size_t i = 0; i < line.size(); i++) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

bool is_text(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c == '\t' || (c >= ' ' && c != '\x7F'); });
}

// `where` begins the message: "PROFILE:12: ".
bool read_line(std::string_view line, const char* where, Identity& identity, soft::Problem& problem) {
  const size_t equals = line.find('=');
  if (equals == line.npos) {
    problem.set(EINVAL, "%s\"%.*s\" is not a line \"key = value\"", where, shown(line), line.data());
    return false;
  }
  const std::string_view key = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
  soft::Problem reason;
  if (set_key(key, value, identity, reason)) return true;
  problem.set(reason.error, "%s%.150s", where, reason.line);
  return false;
}

}  // namespace

bool read_profile(std::string_view text, std::string_view name, Identity& identity, soft::Problem& problem) {
  set_profile_name(name, identity);
  // Long paths keep their end.
  const std::string_view file = name.size() > 64 ? name.substr(name.size() - 64) : name;
  for (unsigned number = 1; !text.empty(); number++) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    char where[96];
    snprintf(where, sizeof where, "%.*s:%u: ", static_cast<int>(file.size()), file.data(), number);
    if (!is_text(line)) {
      problem.set(EINVAL, "%sthe line has bytes that are no text; a profile has lines \"key = value\"", where);
      return false;
    }
    line = trimmed(without_comment(line));
    if (!line.empty() && !read_line(line, where, identity, problem)) return false;
  }
  return complete(identity, name, problem);
}

bool read_setting(std::string_view word, Identity& identity, soft::Problem& problem) {
  if (!is_text(word)) {
    problem.set(EINVAL, "a word of the identity has bytes that are no text");
    return false;
  }
  return read_line(trimmed(word), "", identity, problem) && complete(identity, "the identity", problem);
}

}  // namespace dapple::face

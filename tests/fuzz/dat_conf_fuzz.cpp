// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Runs the parser of dat.conf on arbitrary bytes: it must not crash, and its results must keep the promises of its
// header.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/require.hpp"
#include "udapl/registry/configuration/conf_parser.hpp"

namespace {

using dapple::fuzz::require;

bool is_line_of_text(const std::string& what) {
  for (const char c : what)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return !what.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  unsigned lines = 1;
  for (const char c : text) lines += c == '\n';

  unsigned last_bad = 0;
  const auto report = [&](unsigned line, const std::string& what) {
    require(line > last_bad && line <= lines);
    require(is_line_of_text(what));
    last_bad = line;
  };
  unsigned last_good = 0;
  for (const auto& entry : dapple::registry::parse_dat_conf(text, {2}, report)) {
    require(!entry.ia_name.empty() && entry.ia_name.size() <= 255);
    require(!entry.library.empty() && !entry.provider_id.empty());
    require(entry.api.major >= 2);
    require(entry.line > last_good && entry.line <= lines);
    for (const std::string* field : {&entry.ia_name, &entry.library, &entry.ia_params, &entry.platform_params})
      require(field->find('\0') == field->npos && field->find('\n') == field->npos);
    last_good = entry.line;
  }
  return 0;
}

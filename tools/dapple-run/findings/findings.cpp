// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/findings/findings.hpp"

#include <string.h>

#include <algorithm>
#include <fstream>

namespace dapple::run {

using nlohmann::json;

bool Findings::has_errors() const {
  return std::any_of(reports.begin(), reports.end(), [](const json& report) { return report["level"] == "error"; });
}

bool Findings::lacks_lines() const {
  bool has_frames = false;
  for (const json& report : reports) {
    for (const json& place : report.value("places", json::array())) {
      for (const json& frame : place.value("frames", json::array())) {
        if (frame.value("line", 0) != 0) return false;
        has_frames = true;
      }
    }
  }
  return has_frames;
}

// A process that was killed may leave a part of a line. Such a part is not a report.
Findings read_findings(const char* file) {
  Findings findings;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) {
      // Names of programs and files are not always UTF-8.
      std::replace_if(
          line.begin(), line.end(), [](char letter) { return static_cast<unsigned char>(letter) > '~'; }, '?');
      record = json::parse(line, nullptr, false);
    }
    if (!record.is_object()) continue;
    if (record.contains("attached")) {
      findings.attached = true;
      findings.exit_code = record.value("exitcode", 0);
    } else if (record.contains("kind") && record.contains("level")) {
      findings.reports.push_back(std::move(record));
    } else if (record.contains("kept")) {
      findings.kept.push_back(record.value("kept", ""));
    }
  }
  return findings;
}

std::string ending_of(int status) {
  if (status <= 128) return "exit code " + std::to_string(status);
  return std::string(strsignal(status - 128)) + " (" + std::to_string(status) + ")";
}

std::string as_json_lines(const Findings& findings) {
  std::string text;
  // A program's name may have any bytes.
  for (const json& report : findings.reports)
    text += report.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return text;
}

}  // namespace dapple::run

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The XML of JUnit, which CI systems read.
#include "tools/dapple-run/findings/findings.hpp"

namespace dapple::run {
namespace {

using nlohmann::json;

// XML has no form for most control characters.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(letter) < ' ' && letter != '\n' ? ' ' : letter;
    }
  }
  return result;
}

std::string body_of(const json& report) {
  std::string text = report.value("text", "") + "\n" + report.value("remedy", "") + "\n";
  for (const json& place : report["places"]) {
    text += place.value("title", "") + ":\n";
    for (const json& frame : place["frames"]) {
      const std::string source = frame.value("source", "");
      text += "  " + frame.value("function", "");
      if (!source.empty()) text += " at " + source + ":" + std::to_string(frame.value("line", 0));
      text += " (" + frame.value("module", "") + ")\n";
    }
  }
  return text;
}

std::string test_case(const std::string& program, const std::string& name, const std::string& inside) {
  return "  <testcase classname=\"" + escaped(program) + "\" name=\"" + escaped(name) + "\">" + inside +
         "</testcase>\n";
}

}  // namespace

std::string as_junit(const Findings& findings, const std::string& program) {
  std::string cases;
  size_t tests = 0, failures = 0;
  if (!findings.attached) {
    cases += test_case(program, "attached", "<failure message=\"nothing was checked\"/>");
    tests++;
    failures++;
  }
  if (!findings.complete) {
    cases += test_case(program, "emulated", "<failure message=\"missing syncs are not known\"/>");
    tests++;
    failures++;
  }
  if (findings.status != 0) {
    cases += test_case(program, "end",
                       "<failure message=\"the program ended with " + escaped(ending_of(findings.status)) + "\"/>");
    tests++;
    failures++;
  }
  for (const json& report : findings.reports) {
    const bool is_error = report["level"] == "error";
    const std::string body = escaped(body_of(report));
    const std::string inside =
        is_error ? "<failure message=\"" + escaped(report.value("text", "")) + "\">" + body + "</failure>"
                 : "<system-out>" + body + "</system-out>";
    cases += test_case(program, report["kind"], inside);
    tests++;
    failures += is_error ? 1 : 0;
  }
  if (tests == 0) {
    cases += test_case(program, "no findings", "");
    tests++;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"dapple-run --check\" tests=\"" +
         std::to_string(tests) + "\" failures=\"" + std::to_string(failures) + "\">\n" + cases + "</testsuite>\n";
}

}  // namespace dapple::run

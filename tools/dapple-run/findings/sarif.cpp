// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// SARIF 2.1.0 (OASIS): the static analysis results interchange format, which forges show beside the source.
#include <stdio.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "provider/source_lines/system_headers.hpp"
#include "tools/dapple-run/findings/findings.hpp"

namespace dapple::run {
namespace {

using nlohmann::json;

bool is_plain(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || std::string_view("-._~/").find(character) != std::string_view::npos;
}

// RFC 3986. Forges want paths that begin at the root of the sources, which is the current folder in a CI job.
std::string uri_of(const std::string& given) {
  const std::string path = std::filesystem::path(given).lexically_normal().string();
  std::error_code error;
  const std::string root = std::filesystem::current_path(error).string() + "/";
  const bool is_below = !error && path.starts_with(root);
  std::string uri = !is_below && path.starts_with("/") ? "file://" : "";
  for (const char character : is_below ? path.substr(root.size()) : path) {
    char escaped[4] = {character};
    if (!is_plain(character)) snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(character));
    uri += escaped;
  }
  return uri;
}

bool has_source(const json& frame) {
  return !frame.value("source", "").empty() && frame.value("line", 0) > 0;
}

json location_of(const json& frame) {
  const std::string function = frame.value("function", "");
  const std::string module = frame.value("module", "");
  json location = {{"message", {{"text", function.empty() ? module : function}}}};
  if (has_source(frame)) {
    location["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(frame.value("source", ""))}}},
                                    {"region", {{"startLine", frame.value("line", 1)}}}};
  } else {
    location["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(module)}}},
                                    {"region", {{"byteOffset", frame.value("offset", 0)}}}};
  }
  return location;
}

json stack_of(const json& place) {
  json frames = json::array();
  for (const json& frame : place["frames"]) frames.push_back({{"location", location_of(frame)}});
  return {{"message", {{"text", place.value("title", "")}}}, {"frames", frames}};
}

bool is_own(const json& frame) {
  const std::string module = frame.value("module", "");
  const std::string_view name = std::string_view(module).substr(module.rfind('/') + 1);
  for (const std::string_view library :
       {"libibverbs", "librdmacm", "librpma.so", "libdat2.so", "libdat.so", "libdaplofa.so"}) {
    if (name.starts_with(library)) return false;
  }
  return true;
}

// The first frame with a line of the program's sources, otherwise the first outside of the libraries of RDMA: a forge
// cannot show these.
json place_of(const json& report) {
  const json* first = nullptr;
  // The interpreter of a script may have lines, too. Lines of scripts have no offset in a module.
  for (const json& place : report["places"]) {
    for (const json& frame : place["frames"]) {
      if (has_source(frame) && frame.value("offset", 0) == 0) return json::array({location_of(frame)});
    }
  }
  for (const json& place : report["places"]) {
    for (const json& frame : place["frames"]) {
      if (!is_own(frame)) continue;
      if (has_source(frame) && !source_lines::is_of_system(frame.value("source", "")))
        return json::array({location_of(frame)});
      if (first == nullptr) first = &frame;
    }
  }
  return first == nullptr ? json::array() : json::array({location_of(*first)});
}

json result_of(const json& report) {
  json stacks = json::array();
  for (const json& place : report["places"]) stacks.push_back(stack_of(place));
  return {{"ruleId", report["kind"]},
          {"level", report["level"]},
          {"message", {{"text", report.value("text", "") + " " + report.value("remedy", "")}}},
          {"locations", place_of(report)},
          {"stacks", stacks}};
}

json invocation_of(const Findings& findings) {
  json invocation = {{"executionSuccessful", findings.status == 0 && findings.attached && findings.complete},
                     {"exitCode", findings.status}};
  if (findings.status != 0) invocation["exitCodeDescription"] = ending_of(findings.status);
  return invocation;
}

}  // namespace

std::string as_sarif(const Findings& findings) {
  json rules = json::array(), results = json::array();
  std::set<std::string> known;
  for (const json& report : findings.reports) {
    if (known.insert(report["kind"]).second) {
      rules.push_back({{"id", report["kind"]},
                       {"help", {{"text", report.value("remedy", "")}}},
                       {"shortDescription", {{"text", report["kind"]}}}});
    }
    results.push_back(result_of(report));
  }
  const json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs",
                     {{{"tool", {{"driver", {{"name", "dapple-run --check"}, {"rules", rules}}}}},
                       {"invocations", json::array({invocation_of(findings)})},
                       {"results", results}}}}};
  return log.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace dapple::run

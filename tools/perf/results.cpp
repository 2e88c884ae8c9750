// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/results.hpp"

#include <fmt/format.h>

#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace dapple::perf {
namespace {

// A column: its headline, its name in JSON, its value, and the digits after the point.
struct Column {
  const char* title;
  const char* key;
  double (*value)(const Result&);
  int digits = 3;
};

constexpr Column kLatency[] = {
    {"t_min[usec]", "t_min_us", [](const Result& r) { return r.latency->min; }},
    {"t_max[usec]", "t_max_us", [](const Result& r) { return r.latency->max; }},
    {"t_typical[usec]", "t_typical_us", [](const Result& r) { return r.latency->typical; }},
    {"t_avg[usec]", "t_avg_us", [](const Result& r) { return r.latency->average; }},
    {"t_stdev[usec]", "t_stdev_us", [](const Result& r) { return r.latency->deviation; }},
    {"99%[usec]", "p99_us", [](const Result& r) { return r.latency->percentile_99; }},
    {"99.9%[usec]", "p99_9_us", [](const Result& r) { return r.latency->percentile_99_9; }},
};

constexpr Column kBandwidth[] = {
    {"BW peak[MiB/sec]", "bw_peak_mib_s", [](const Result& r) { return r.bandwidth->peak_mib_s; }},
    {"BW average[MiB/sec]", "bw_average_mib_s", [](const Result& r) { return r.bandwidth->average_mib_s; }},
    {"BW average[Gb/sec]", "bw_average_gbit_s", [](const Result& r) { return r.bandwidth->average_gbit_s; }},
    {"MsgRate[Mpps]", "rate_mpps", [](const Result& r) { return r.bandwidth->rate_mpps; }, 6},
};

std::vector<Column> columns_of(Kind kind) {
  switch (kind) {
    case Kind::kLatency:
      return {std::begin(kLatency), std::end(kLatency)};
    case Kind::kBandwidth:
      return {std::begin(kBandwidth), std::end(kBandwidth)};
    case Kind::kTest:
      break;
  }
  return {};
}

// "rxe0 port 1, 10.9.0.1, GID ::ffff:10.9.0.1, MTU 1024"
std::string line_of(const LocalPort& local) {
  std::string text = local.device;
  const auto add = [&text](const char* before, const char* title, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : before) + (title + value);
  };
  add(" ", "port ", local.number);
  add(", ", "", local.address);
  add(", ", "GID ", local.gid);
  add(", ", "MTU ", local.mtu);
  return text.empty() ? "" : text + "\n";
}

std::string headline(const Report& report) {
  const Parameters& p = report.parameters;
  std::string text = fmt::format("uDAPL test: {} with {}", report.ia, report.peer);
  if (p.kind != Kind::kTest)
    text = fmt::format("{} {}: {} with {}", text_of(p.operation), p.kind == Kind::kLatency ? "latency" : "bandwidth",
                       report.ia, report.peer);
  if (p.kind == Kind::kBandwidth) text += fmt::format(", {} outstanding requests", p.depth);
  return text + "\n" + line_of(report.local);
}

}  // namespace

std::string for_people(const Report& report) {
  if (!report.client) return fmt::format("served {}: complete and correct\n", report.peer);
  const std::vector<Column> columns = columns_of(report.parameters.kind);
  std::vector<std::vector<std::string>> rows{{"#bytes", "#iterations"}};
  for (const Column& column : columns) rows[0].push_back(column.title);
  const bool test = report.parameters.kind == Kind::kTest;
  if (test) rows[0].push_back("result");
  for (const Result& result : report.results) {
    rows.push_back({std::to_string(result.size), std::to_string(result.iterations)});
    for (const Column& column : columns)
      rows.back().push_back(fmt::format("{:.{}f}", column.value(result), column.digits));
    if (test) rows.back().push_back("Send, RDMA Write and RDMA Read verified");
  }
  return headline(report) + format_table(rows);
}

std::string as_json(const Report& report) {
  const Parameters& p = report.parameters;
  Json json = {{"program", report.program},
               {"role", report.client ? "client" : "server"},
               {"ia", report.ia},
               {"peer", report.peer},
               {"local",
                {{"device", report.local.device},
                 {"port", report.local.number},
                 {"address", report.local.address},
                 {"gid", report.local.gid},
                 {"mtu", report.local.mtu}}}};
  if (p.kind != Kind::kTest) json["operation"] = word_of(p.operation);
  if (p.kind == Kind::kBandwidth) json["depth"] = p.depth;
  json["results"] = Json::array();
  for (const Result& result : report.results) {
    Json row = {{"bytes", result.size}, {"iterations", result.iterations}};
    for (const Column& column : columns_of(p.kind)) row[column.key] = rounded(column.value(result), column.digits);
    if (p.kind == Kind::kTest) row["verified"] = true;
    json["results"].push_back(row);
  }
  return document_of(json);
}

}  // namespace dapple::perf

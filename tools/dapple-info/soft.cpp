// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/soft.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <memory>

#include "provider/member/daemon_link.hpp"
#include "provider/network/port_mtu.hpp"
#include "tools/report/table.hpp"

namespace dapple::info {
namespace {

using soft::PortOwner;
using Rows = std::vector<std::vector<std::string>>;

std::string text_of_guid(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xFFFF, guid >> 16 & 0xFFFF,
                     guid & 0xFFFF);
}

std::string text_of_gid(const soft::GidEntry& entry) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, entry.gid, text, sizeof text) != nullptr ? text : "";
}

const char* text_of_type(const soft::GidEntry& entry) {
  return entry.type == soft::GidType::kRoceV1 ? "RoCE v1" : "RoCE v2";
}

// The members of dappled, without this process.
uint32_t programs(const SoftReport& report) {
  return report.status.members > 0 ? report.status.members - 1 : 0;
}

bool dappled_has_port(const SoftReport& report) {
  return report.status.slots > 0;
}

std::string describe_port(const SoftReport& report) {
  const soft::StatusReply& status = report.status;
  if (dappled_has_port(report)) {
    return fmt::format("dappled has it for {}; {} of {} slots are in use, and more are added when needed",
                       status.dual_stack != 0 ? "IPv4 and IPv6" : "IPv4 only", status.slots_in_use, status.slots - 1);
  }
  if (report.owner.kind == PortOwner::Kind::kNobody) return "free; the first program takes it";
  if (report.owner.kind == PortOwner::Kind::kUnknown) return "not known, because /proc/net/udp cannot be read";
  char line[soft::kLineSize];
  soft::describe(report.owner, soft::kRocePort, line, sizeof line);
  return line;
}

bool connections_are_managed(const SoftReport& report) {
  const soft::CmStatus& status = report.status.connection_management;
  return status.channels + status.received != 0;
}

// Rows of counters; those that are 0 only on request.
class CounterTable {
 public:
  CounterTable(const char* headline, Counters wanted) : rows_{{headline, "COUNT"}}, wanted_(wanted) {}

  void add(const char* title, uint64_t count) {
    if (count != 0 || wanted_ == Counters::kAll) rows_.push_back({title, std::to_string(count)});
  }
  // With an empty line before it; empty without rows.
  std::string text() const { return rows_.size() > 1 ? "\n" + format_table(rows_) : ""; }

 private:
  Rows rows_;
  Counters wanted_;
};

std::string counters_for_people(const SoftReport& report, Counters wanted) {
  CounterTable others("COUNTER", wanted), bad("BAD PACKETS", wanted), connections("CONNECTION MANAGEMENT", wanted);
  for (size_t i = 0; i < soft::kCounterCount; i++) {
    const soft::CounterName& name = soft::kCounterNames[i];
    (name.bad ? bad : others).add(name.title, report.status.counters[i]);
  }
  if (connections_are_managed(report)) {
    const auto counts = soft::all_of(report.status.connection_management);
    for (size_t i = 0; i < counts.size(); i++) connections.add(soft::kCmCounterNames[i].title, counts[i]);
  }
  std::string text = others.text() + bad.text() + connections.text();
  if (wanted == Counters::kAll) return text;
  return text + (text.empty() ? "\nAll counters are 0; --verbose lists them.\n"
                              : "\n--verbose also lists the counters that are 0.\n");
}

const char* kind_of(const SoftReport& report) {
  if (report.problem.empty() && dappled_has_port(report)) return "dappled";
  switch (report.owner.kind) {
    case PortOwner::Kind::kNobody:
      return "nobody";
    case PortOwner::Kind::kKernel:
      return "kernel";
    case PortOwner::Kind::kProcess:
      return "process";
    default:
      return "";
  }
}

}  // namespace

SoftReport read_soft() {
  SoftReport report;
  soft::Problem problem;
  auto link = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  if (link == nullptr && problem.error == ECONNREFUSED) {
    // A dappled that was started only for this report need not stay.
    setenv("DAPPLED_LINGER", "0.1", 0);
    link = soft::DaemonLink::open(problem);
    report.started = link != nullptr;
  }
  report.owner = soft::port_owner(soft::kRocePort);
  soft::DeviceList list;
  if (link == nullptr || !link->status(report.status, problem) || !link->devices(list, problem)) {
    report.problem = problem.line;
    return report;
  }
  for (uint32_t i = 0; i < list.count; i++) {
    soft::DeviceInfo device;
    // A network device may disappear at any time.
    if (link->device(list.indexes[i], device, problem)) report.devices.push_back(device);
  }
  report.transports = read_transports(*link);
  return report;
}

std::string soft_for_people(const SoftReport& report, Counters wanted) {
  if (!report.problem.empty()) return fmt::format("Software device of dapple-run: not available: {}\n", report.problem);
  const soft::StatusReply& status = report.status;
  std::string text = "Software devices, which dapple-run PROGRAM gives to a program:\n\n";
  Rows devices{{"DEVICE", "NETDEV", "STATE", "NETDEV MTU", "MTU", "GUID"}};
  Rows gids{{"DEVICE", "INDEX", "TYPE", "GID"}};
  for (const soft::DeviceInfo& device : report.devices) {
    devices.push_back({device.name, device.netdev, device.up != 0 ? "up" : "down", std::to_string(device.netdev_mtu),
                       std::to_string(soft::roce_mtu_bytes(device.netdev_mtu)), text_of_guid(device.guid)});
    for (uint32_t i = 0; i < soft::kMaxGids; i++) {
      if (device.gids[i].valid != 0) {
        gids.push_back({device.name, std::to_string(i), text_of_type(device.gids[i]), text_of_gid(device.gids[i])});
      }
    }
  }
  text += format_table(devices);
  if (gids.size() > 1) text += "\n" + format_table(gids);
  text += fmt::format("\nUDP port {}: {}\n", soft::kRocePort, describe_port(report));
  text += fmt::format("dappled: process {} of user {}{}; {} programs\n", status.process, status.uid,
                      report.started ? ", started for this report" : "", programs(report));
  if (status.refused_requests + status.malformed_messages + status.refused_connections != 0) {
    text += fmt::format("dappled refused {} requests and {} connections, and dropped {} malformed messages\n",
                        status.refused_requests, status.refused_connections, status.malformed_messages);
  }
  if (!dappled_has_port(report)) return text;
  const std::string transports = transports_for_people(report.transports);
  if (!transports.empty()) text += "\n" + transports;
  return text + counters_for_people(report, wanted);
}

Json soft_as_json(const SoftReport& report) {
  const soft::StatusReply& status = report.status;
  Json json = {{"problem", text_or_null(report.problem)},
               {"port", {{"number", soft::kRocePort}, {"owner", kind_of(report)}}}};
  if (report.owner.kind == PortOwner::Kind::kProcess) {
    json["port"]["uid"] = report.owner.uid;
    json["port"]["process"] = report.owner.process;
    json["port"]["program"] = report.owner.program;
  }
  if (report.problem.empty()) {
    json["dappled"] = {{"process", status.process},
                       {"uid", status.uid},
                       {"started", report.started},
                       {"programs", programs(report)},
                       {"dual_stack", status.dual_stack != 0},
                       {"slots", dappled_has_port(report) ? status.slots - 1 : 0},
                       {"slots_in_use", status.slots_in_use},
                       {"refused_requests", status.refused_requests},
                       {"refused_connections", status.refused_connections},
                       {"malformed_messages", status.malformed_messages},
                       {"takeovers", status.takeovers}};
  }
  json["devices"] = Json::array();
  for (const soft::DeviceInfo& device : report.devices) {
    Json gids = Json::array();
    for (uint32_t i = 0; i < soft::kMaxGids; i++) {
      const soft::GidEntry& entry = device.gids[i];
      if (entry.valid == 0) continue;
      gids.push_back({{"index", i}, {"type", text_of_type(entry)}, {"gid", text_of_gid(entry)}});
    }
    json["devices"].push_back({{"name", device.name},
                               {"netdev", device.netdev},
                               {"up", device.up != 0},
                               {"netdev_mtu", device.netdev_mtu},
                               {"mtu_bytes", soft::roce_mtu_bytes(device.netdev_mtu)},
                               {"guid", text_of_guid(device.guid)},
                               {"gids", gids}});
  }
  json["programs"] = transport_programs_as_json(report.transports);
  json["transports"] = transports_as_json(report.transports);
  json["transports_problem"] = text_or_null(report.transports.problem);
  Json& counters = json["counters"] = Json::object();
  for (size_t i = 0; report.problem.empty() && i < soft::kCounterCount; i++) {
    counters[soft::kCounterNames[i].key] = status.counters[i];
  }
  Json& connections = json["connection_management"] = Json::object();
  const auto counts = soft::all_of(status.connection_management);
  for (size_t i = 0; report.problem.empty() && i < counts.size(); i++) {
    connections[soft::kCmCounterNames[i].key] = counts[i];
  }
  return json;
}

}  // namespace dapple::info

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/daemon.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "provider/member/daemon_link.hpp"
#include "provider/network/port_owner.hpp"

namespace dapple::run::doctor {
namespace {

// The port after dappled has answered, so that a dappled that owns it is known by its status.
Line port_line(bool dappled_has_it) {
  Line line{Verdict::kWorks, "UDP port 4791", {}};
  if (dappled_has_it) {
    line.text = "dappled has it, for the programs of its user";
    return line;
  }
  const soft::PortOwner owner = soft::port_owner(soft::kRocePort);
  switch (owner.kind) {
    case soft::PortOwner::Kind::kNobody:
      line.text = "free; the first program takes it";
      return line;
    case soft::PortOwner::Kind::kUnknown:
      line.verdict = Verdict::kPartly;
      line.text = "its owner is not known, because /proc/net/udp cannot be read";
      return line;
    default:
      break;
  }
  char text[soft::kLineSize];
  soft::describe(owner, soft::kRocePort, text, sizeof text);
  line.verdict = Verdict::kFails;
  line.text = text;
  return line;
}

}  // namespace

DaemonLines daemon() {
  soft::Problem problem;
  Line line{Verdict::kWorks, "dappled", {}};
  bool was_there = true;
  auto link = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  if (link == nullptr && problem.error == ECONNREFUSED) {
    was_there = false;
    link = soft::DaemonLink::open(problem);
  }
  soft::StatusReply status;
  if (link == nullptr || !link->status(status, problem)) {
    line.verdict = Verdict::kFails;
    line.text = problem.line;
    return {port_line(false), line};
  }
  const std::string process = "process " + std::to_string(status.process) + " of user " + std::to_string(status.uid);
  line.text =
      !was_there ? "starts and answers" : process + ", with " + std::to_string(status.members - 1) + " programs";
  if (status.uid != geteuid()) line.text += "; its user is another one, whom DAPPLE_TRUST_UID names";
  return {port_line(status.slots > 0), line};
}

}  // namespace dapple::run::doctor

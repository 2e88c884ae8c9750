// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/race_findings.hpp"

#include <string>
#include <utility>
#include <vector>

#include "provider/network/address_text.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {
namespace {

constexpr const char* kRemedy =
    "Let the program of the second request learn that the first one is complete: poll its completion, and send a "
    "message then.";

const char* name_of(roce::SendOpcode opcode) {
  switch (opcode) {
    case roce::SendOpcode::kRead:
      return "an RDMA Read";
    case roce::SendOpcode::kCompareSwap:
      return "a compare and swap";
    case roce::SendOpcode::kFetchAdd:
      return "a fetch and add";
    case roce::SendOpcode::kAtomicWrite:
      return "an atomic write";
    case roce::SendOpcode::kWrite:
    case roce::SendOpcode::kWriteImmediate:
      return "an RDMA Write";
    default:
      return "a Send";
  }
}

// "process 123 at 10.0.0.1"
std::string text_of(const Races::Program& program) {
  std::string text = format("process %d", program.process);
  if (program.gid) text += format(" at %s", AddressText(program.gid->data()).c_str());
  return text;
}

// "an RDMA Write of queue pair 0x11 of process 123 to queue pair 0x12"
std::string text_of(const NotedAccess& access, const Races::Program& program) {
  std::string text = format("%s of ", name_of(access.opcode));
  if (access.is_own) return text + format("this program's queue pair 0x%x", qpn_of(access.name));
  text += format("queue pair 0x%x", qpn_of(access.name));
  if (program.process != 0) text += " of " + text_of(program);
  return text + format(" to queue pair 0x%x", access.via);
}

}  // namespace

void report_race(Checker& checker, const Qp& qp, const Races::Found& found) {
  const NotedAccess& earlier = found.race.earlier;
  const size_t size = found.race.end - found.race.begin;
  const auto* bytes = reinterpret_cast<const void*>(found.race.begin);
  std::vector<ReportedStack> places;
  if (found.posted) places.push_back({"posted", *found.posted});
  if (const std::optional<ReportedStack> made = checker.objects.made(&qp)) places.push_back(*made);
  const uint32_t key = found.access.key != 0 ? found.access.key : earlier.key;
  if (const auto registration = checker.keys.find(&qp.context->memory, key))
    places.push_back({"registered", registration->registered});
  checker.reporter.show(
      {.kind = "racing-access",
       .text = format("Nothing orders %s and %s of %s, which use the same bytes (%zu at %p%s).",
                      text_of(earlier, found.programs[0]).c_str(), text_of(found.access, found.programs[1]).c_str(),
                      qp.context->ibv->device->name, size, bytes, key != 0 ? format(", by key 0x%x", key).c_str() : ""),
       .remedy = kRemedy,
       .places = std::move(places)});
}

void report_own_races(Checker& checker, const Qp& qp, const std::vector<Races::Told>& races) {
  for (const Races::Told& race : races) {
    checker.reporter.show(
        {.kind = "racing-access",
         .text = format("At the memory of %s nothing orders %s of queue pair 0x%x of %s and a request of queue "
                        "pair 0x%x of process %d to the same bytes.",
                        text_of(race.target).c_str(), name_of(race.opcode), qp.qpn, qp.context->ibv->device->name,
                        race.other_qpn, race.other_process),
         .remedy = kRemedy,
         .places = {{"posted", race.posted}}});
  }
}

}  // namespace dapple::soft::check

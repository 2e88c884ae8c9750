// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/trace.hpp"

#include <rdma/rdma_user_cm.h>
#include <string.h>

#include <iterator>

#include "provider/member/trace.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/rdma_cm_command.hpp"

namespace dapple::doors {
namespace {

// The names of RDMA_CM_EVENT_* by number. The kernel and librdmacm have the same numbers.
constexpr const char* kEvents[] = {
    "ADDR_RESOLVED",  "ADDR_ERROR",      "ROUTE_RESOLVED", "ROUTE_ERROR",   "CONNECT_REQUEST", "CONNECT_RESPONSE",
    "CONNECT_ERROR",  "UNREACHABLE",     "REJECTED",       "ESTABLISHED",   "DISCONNECTED",    "DEVICE_REMOVAL",
    "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE",    "TIMEWAIT_EXIT",
};

// Null without DAPPLE_TRACE. If the file cannot be written, the device reports that when it is opened.
soft::Trace* the_trace() {
  static soft::Trace* const opened = []() -> soft::Trace* {
    static soft::Trace made;
    soft::Problem problem;
    if (!made.open(problem)) return nullptr;
    soft::OwnedFd& file = made.file().descriptor();
    file = soft::OwnedFd(hide(file.release()));
    return &made;
  }();
  return opened;
}

}  // namespace

void trace_command(uint32_t number, uint32_t id, int error) {
  soft::Trace* trace = the_trace();
  const char* name = function_of(number);
  if (trace == nullptr || name == nullptr) return;
  soft::TraceLine line;
  line.text("call", name);
  // A new id has no number before the call.
  if (number != RDMA_USER_CM_CMD_CREATE_ID) line.number("id", id);
  trace->append(line.error(error));
}

void trace_event(std::span<const uint8_t> answer) {
  soft::Trace* trace = the_trace();
  rdma_ucm_event_resp event = {};
  if (trace == nullptr || answer.size() < offsetof(rdma_ucm_event_resp, param)) return;
  memcpy(&event, answer.data(), offsetof(rdma_ucm_event_resp, param));
  soft::TraceLine line;
  line.text("event", "connection");
  line.text("name", event.event < std::size(kEvents) ? kEvents[event.event] : "unknown").number("id", event.id);
  // An errno below 0, or a reason of a rejection.
  if (event.status != 0) line.signed_number("status", static_cast<int32_t>(event.status));
  trace->append(line);
}

}  // namespace dapple::doors

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/trace/program_trace.hpp"

#include <errno.h>

#include <cassert>

#include "provider/common/clock.hpp"
#include "provider/common/immortal.hpp"
#include "provider/soft/faults/verbs_names.hpp"

namespace dapple::soft {
namespace {

struct Opened {
  Opened() {
    if (trace.open(problem)) trace.file().descriptor().hide();
  }

  Trace trace;
  Problem problem;
};

Opened& opened() {
  static Immortal<Opened> one;
  return *one;
}

// Polls of this thread that have found nothing, since its last call.
struct VainPolls {
  uint64_t count;
  uint64_t begin_ns;
};
thread_local VainPolls vain_polls = {};

}  // namespace

Trace* program_trace() {
  Opened& one = opened();
  return one.trace.file() ? &one.trace : nullptr;
}

bool trace_is_possible(Problem& problem) {
  const Opened& one = opened();
  problem = one.problem;
  return one.problem.error == 0;
}

void append_call(TraceLine& line) {
  assert(program_trace() != nullptr);
  vain_polls.count = 0;
  program_trace()->append(line);
}

void trace_poll_in_vain() {
  if (vain_polls.count++ == 0) vain_polls.begin_ns = now_ns();
}

void trace_poll(const char* call, const ibv_cq* cq, uint32_t found) {
  // Before the time of the line, so that the polls in vain do not seem to begin before the call in front of them.
  assert(found > 0);
  const uint64_t now = now_ns();
  TraceLine line;
  line.text("call", call).hex("cq", reinterpret_cast<uintptr_t>(cq)).number("found", found);
  if (vain_polls.count != 0) {
    assert(vain_polls.begin_ns <= now);
    line.number("vain_polls", vain_polls.count);
    line.number("vain_ns", now - vain_polls.begin_ns);
  }
  append_call(line);
}

void trace_notification(const ibv_cq* cq) {
  TraceLine line;
  line.text("event", "notification").hex("cq", reinterpret_cast<uintptr_t>(cq));
  append_call(line);
}

void trace_open(const char* device, int error) {
  // Anybody may choose the name, so it is shown without characters that would need an escape.
  char program[64] = {};
  for (size_t i = 0; i < sizeof program - 1 && program_invocation_short_name[i] != '\0'; i++) {
    const char letter = program_invocation_short_name[i];
    program[i] = letter < ' ' || letter > '~' || letter == '"' || letter == '\\' ? '?' : letter;
  }
  TraceLine line;
  line.text("call", "ibv_open_device").text("device", device).text("program", program);
  append_call(line.error(error));
}

void trace_post(const char* call, const ibv_qp& qp, const roce::SendRequest& request, uint64_t bytes) {
  TraceLine line;
  line.text("call", call).hex("qp", qp.qp_num).number("wr_id", request.id).text("opcode", opcode_name(request.opcode));
  line.number("bytes", bytes);
  if (request.rkey != 0) line.hex("remote_address", request.remote_address).hex("rkey", request.rkey);
  if (qp.qp_type == IBV_QPT_XRC_SEND) {
    line.hex("remote_srq", request.remote_srq);
  } else if (request.remote_qpn != 0) {
    line.hex("remote_qp", request.remote_qpn);
  }
  if ((request.flags & roce::kSignaled) != 0) line.number("signaled", 1);
  if ((request.flags & roce::kFence) != 0) line.number("fence", 1);
  if ((request.flags & roce::kInline) != 0) line.number("inline", 1);
  append_call(line);
}

void trace_refusal(const char* call, uint32_t qpn, uint64_t request_id, int error) {
  TraceLine line;
  line.text("call", call).hex("qp", qpn).number("wr_id", request_id).error(error);
  append_call(line);
}

void trace_event(ibv_event_type type, const void* element) {
  assert(program_trace() != nullptr);
  TraceLine line;
  line.text("event", "asynchronous").text("name", event_name(type));
  if (type == IBV_EVENT_CQ_ERR) {
    line.hex("cq", reinterpret_cast<uintptr_t>(element));
  } else if (type == IBV_EVENT_SRQ_LIMIT_REACHED || type == IBV_EVENT_SRQ_ERR) {
    line.hex("srq", reinterpret_cast<uintptr_t>(element));
  } else if (element != nullptr) {
    line.hex("qp", static_cast<const ibv_qp*>(element)->qp_num);
  }
  program_trace()->append(line);
}

}  // namespace dapple::soft

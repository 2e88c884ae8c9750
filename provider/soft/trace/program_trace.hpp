// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/member/trace.hpp"
#include "provider/soft/abi/plugin.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft {

// This process' trace; null without DAPPLE_TRACE, or if its file cannot be written: then no device can be opened.
Trace* program_trace();
bool trace_is_possible(Problem& problem);

// The functions from here on need a trace.

// A table whose functions write a line for each call, and then call those of `traced`.
const Operations& traced_operations(const Operations& traced);

// Writes the line of a call of this thread.
void append_call(TraceLine& line);

void trace_open(const char* device, int error);

// A poll that has found nothing has no line: a program may poll a million times in vain. The next poll of the thread
// that finds completions tells how many there were since the thread's last call, and how long they took.
void trace_poll_in_vain();
// `call`: the verb that polls. `found`: completions, at least one.
void trace_poll(const char* call, const ibv_cq* cq, uint32_t found);
// The thread has got an event of this queue's channel.
void trace_notification(const ibv_cq* cq);

// `call`: the verb that posts. `bytes`: of the request's segments, which it need not have.
void trace_post(const char* call, const ibv_qp& qp, const roce::SendRequest& request, uint64_t bytes);
void trace_refusal(const char* call, uint32_t qpn, uint64_t request_id, int error);

// `element`: an ibv_cq*, ibv_qp* or ibv_srq*, as the type requires, or null.
void trace_event(ibv_event_type type, const void* element);

}  // namespace dapple::soft

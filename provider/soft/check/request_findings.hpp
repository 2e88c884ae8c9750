// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Findings about requests that complete with an error for another reason than an access to memory.
#pragma once

#include <cstdint>
#include <string>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::check {

struct BindExplanation {
  std::string reason;  // a clause
  const char* remedy;
};
BindExplanation explain_bind(BindObstacle obstacle, const roce::WindowBind& bind);
// A bind that fails.
void report_bind(Checker& checker, const Qp& qp, const roce::WindowBind& bind, BindObstacle obstacle);
// An invalidation that fails.
void report_invalidation(Checker& checker, const Qp& qp, uint32_t rkey, bool from_peer);
// Tells whether the request must fail because the queue pair's transport lacks the operation, or because its address
// handle has another protection domain.
bool is_unfit(const Qp& qp, roce::SendOpcode opcode, bool is_foreign_address);
// Behind the post of such a request. The one who posts it has noted before the post that its failure is told.
void report_unfit(Checker& checker, const Qp& qp, roce::SendOpcode opcode);

// The program posts a Read or an atomic with IBV_SEND_INLINE.
void report_inline_result(Checker& checker, const Qp& qp, roce::SendOpcode opcode);

// The program posts a request to a queue pair in error, and should know that.
void report_post_in_error(Checker& checker, const Qp& qp);

// The calling thread has got the event of librdmacm that the connection of this queue pair has ended. It may be another
// device's.
void note_disconnection(Checker& checker, const void* qp);
// The program posts a request, and the same thread has got that event of one end of the connection.
void report_post_after_end(Checker& checker, const Qp& qp, const Stack& got);

// A note if the program gives this address to a queue pair or an address handle, and its packets would have no hop.
void report_if_hopless(Checker& checker, const ibv_context& device, const ibv_ah_attr& address);

// The program destroys the queue pair: its requests that are not complete, and a note of the messages that waited.
void report_end(Checker& checker, Qp& qp);

// A note if a queue that is named by its address holds more than the program has asked for. `what`: "send requests";
// `qpn`: 0 if `what` names the queue, too; `object`: the queue's, for the place where it was made.
void report_if_beyond(Checker& checker, const Context& device, const void* queue, uint64_t held, size_t granted,
                      const char* what, uint32_t qpn, const void* object);

}  // namespace dapple::soft::check

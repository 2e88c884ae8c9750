// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests that a response answers: RDMA Reads, atomics, Flush, Atomic Write.
#pragma once

#include "roce/core/core.hpp"

namespace dapple::roce {

// Asks for the packets [first, end) of the entry's response. False if the sink takes no more now.
bool emit_request(const Core& core, const SendEntry& entry, uint32_t first, uint32_t end, PacketSink& sink);
// Puts the next packet of a response into the entry's memory: kSuccess, or the status of the request.
CompletionStatus take_response(const Core& core, const SendEntry& entry, const Packet& packet);

}  // namespace dapple::roce

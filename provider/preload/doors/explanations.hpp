// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tells the plug-in of rdma_cm's failures, if the program runs under dapple-run --explain or --check, and of its first
// channel.
#pragma once

#include "provider/member/cm_voice.hpp"
#include "provider/preload/doors/rdma_cm_command.hpp"
#include "provider/protocol/cm_messages.hpp"

namespace dapple::doors {

void explain_cm(const soft::CmVoice& voice);

// As in Doors (provider/system/doors.hpp).
void when_cm_begins(void (*function)());
// The program has opened a channel.
void cm_begins();

// A command fails with `error`. `reason` is dappled's line.
void explain_refusal(const RdmaCmCommand& command, int error, const char* reason);
// A command fails with `error` because DAPPLE_FAULTS says so.
void explain_planned(const RdmaCmCommand& command, int error);
// The program gets the event in `reply`. A failure is reported with the id's addresses.
void explain_event(const soft::CmChannelName& channel, const soft::CmCommandReply& reply);

}  // namespace dapple::doors

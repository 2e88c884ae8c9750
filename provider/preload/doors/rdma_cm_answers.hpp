// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Keeps the answers about ids that came along with an event (CmAnswerAhead in cm_messages.hpp).
//
// Any thread may call these functions. The caller blocks signals, because a handler would find the lock taken; only
// find_answer() takes no lock.
#pragma once

#include <stdint.h>

#include "provider/preload/doors/rdma_cm_command.hpp"
#include "provider/protocol/cm_messages.hpp"

namespace dapple::doors {

// A number that changes with each command that may have changed an id, and with each event without answers.
uint32_t answers_age();
// Call this after the program has read an event of this channel. Drops the older answers about the event's id and keeps
// those that came with the event. `age` is answers_age() from before the question for the event: if it has changed
// meanwhile, the answers are not kept, because another thread's command may have outdated them.
void keep_answers(const soft::CmChannelName& channel, const soft::CmCommandReply& reply, uint32_t age);
// True if there is an answer; `reply` has it then. The answer stays. False, too, while another thread changes it.
bool find_answer(const RdmaCmCommand& command, const soft::CmChannelName& channel, soft::CmCommandReply& reply);
// Call this after each command about this id.
void drop_answers(uint32_t id);
// Call this when another dappled has replaced this one.
void drop_all_answers();
// Call this in a child of fork().
void forget_answers();

}  // namespace dapple::doors

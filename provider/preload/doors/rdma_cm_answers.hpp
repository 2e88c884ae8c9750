// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Answers about ids that came along with an event, until they are asked for (CmAnswerAhead in cm_messages.hpp).
//
// Any thread may call these functions. The caller blocks signals, because a handler would find the lock taken.
#ifndef DAPPLE_PROVIDER_PRELOAD_DOORS_RDMA_CM_ANSWERS_HPP
#define DAPPLE_PROVIDER_PRELOAD_DOORS_RDMA_CM_ANSWERS_HPP

#include <stdint.h>

#include "provider/preload/doors/rdma_cm_command.hpp"
#include "provider/soft/cm_messages.hpp"

namespace dapple::doors {

// Another number after each command or event that may have changed an id.
uint32_t answers_age();
// The program has read an event of this channel: the older answers about its id are of no use any more, and those that
// came with the event are kept. `age` is from before the question: an answer that another
// thread's command has outdated meanwhile is not kept.
void keep_answers(const soft::CmChannelName& channel, const soft::CmCommandReply& reply, uint32_t age);
// True: `reply` has the answer.
bool find_answer(const RdmaCmCommand& command, const soft::CmChannelName& channel, soft::CmCommandReply& reply);
// The program has given a command about this id.
void drop_answers(uint32_t id);
// dappled is another one.
void drop_all_answers();
// In a child of fork().
void forget_answers();

}  // namespace dapple::doors

#endif  // DAPPLE_PROVIDER_PRELOAD_DOORS_RDMA_CM_ANSWERS_HPP

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completions as programs see them: ibv_wc, and the interface of ibv_cq_ex.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

void show(const roce::Completion& completion, ibv_wc& shown);

// Fills in the functions of ibv_cq_ex. Between start_poll() and end_poll() the queue's poll lock is held, unless the
// program promised one thread; requests may be posted meanwhile.
void publish_cq_ex(Cq& cq);

}  // namespace dapple::soft

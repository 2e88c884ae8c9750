// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

namespace dapple::soft::hang {

// The calling thread has polled the queue. `in_vain`: without a completion.
void note_poll(ibv_cq* cq, bool in_vain);

}  // namespace dapple::soft::hang

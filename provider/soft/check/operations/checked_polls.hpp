// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The polls of a program under dapple-run --check: with each completion, bytes of the device become the program's.
#pragma once

#include <infiniband/verbs.h>

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::check {

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
// The polls of the queue's extended interface pass through the check, too.
void watch_polls(Cq& cq);

}  // namespace dapple::soft::check

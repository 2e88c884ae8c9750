// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include "provider/soft/progress/engines.hpp"

namespace dapple::soft {

// The short way of plain Sends to a process of this host (roce/at_once.hpp). Under the queue pair's lock, in a turn
// with its engine: posts and sends the first requests of a list, which is not empty, as far as their packets can go to
// the peer's ring at once. Returns the first other one; if it is null, the turn ends by kWake.
ibv_send_wr* post_plain_sends(Engines& engines, Qp& qp, ibv_send_wr* requests);

}  // namespace dapple::soft

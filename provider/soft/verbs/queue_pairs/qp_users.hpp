// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair counts itself in the objects that it needs. A work queue does, too: it has a queue pair behind it.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::verbs {

// The queue pair is complete: the program sees it, and cannot destroy the objects that it needs.
void hold_objects(Qp& qp, ibv_pd* pd);

// The program destroys the queue pair. Nobody uses it any more afterwards, and it holds only the protection domain,
// because a parent domain's functions free its memory: the caller deletes it, and then leaves what this returns.
[[nodiscard]] Pd& leave_objects(Qp& qp);

}  // namespace dapple::soft::verbs

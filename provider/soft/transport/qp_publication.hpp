// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Queue pairs for which peers on this host copy bytes. A queue pair is published while its attributes stay as they are.
#pragma once

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/placement/publication.hpp"

namespace dapple::soft {

// Call both without the queue pair's lock. publish_qp(), after a change, publishes the queue pair if its state allows
// it.
void publish_qp(Qp& qp, Publication& publication);
// revoke_qp() comes before a change and before the end: when it returns, no peer copies for the queue pair any more.
void revoke_qp(Qp& qp, Publication& publication);

}  // namespace dapple::soft

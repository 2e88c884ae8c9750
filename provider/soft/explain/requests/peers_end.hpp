// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The two ends of a connection between programs of one host are compared: each shows its queue pairs to dappled. Of an
// end on another host the packets tell something.
#pragma once

#include <string>

#include "provider/soft/explain/failures.hpp"

namespace dapple::soft::explain {

// Whether the peer is on this host.
bool is_of_this_host(const Failure& failure);
// Whether the peer's end is in this process, too.
bool has_peers_end(const Failure& failure);

// The texts are empty if there is no difference that matters, or if nobody knows.

// Why the peer does not answer.
Reason why_peer_is_silent(const Failure& failure);
// Why the peer's queue pair takes the request for an invalid one.
Reason why_peer_refuses(const Failure& failure);
// Why the peer's answer has another length than the request asks for.
Reason why_answer_is_bad(const Failure& failure);

}  // namespace dapple::soft::explain

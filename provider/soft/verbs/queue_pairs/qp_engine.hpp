// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The engine of a new queue pair, with the layers around it that dapple-run's options ask for.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::verbs {

// The way of completions of receives to a completion queue, through a trace if the environment asks for one, which
// `traced` keeps. Null: no memory.
roce::CompletionSink* traced_way(Cq& cq, std::unique_ptr<roce::CompletionSink>& traced);

// Makes the engine of a queue pair that has its number. False: no memory.
bool make_engine(Qp& qp, uint32_t netdev_mtu);

}  // namespace dapple::soft::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Receiving queue pairs of XRC, which may have several handles.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::verbs {

// Before the queue pair has its engine. 0, or ENOMEM.
int join_xrc(Qp& qp, Xrcd& xrcd);
// The new queue pair is complete: from now on ibv_open_qp() finds it.
void show_to_domain(Qp& qp);
// The program destroys one of the handles, with the queue pair behind it if it is the last one.
void close_xrc_qp(Qp& handle);
// EOPNOTSUPP: the queue pair behind the handle is another process' own (is_elsewhere()).
int refuse_elsewhere(const Qp& qp);

// The part of any queue pair, or handle, that libibverbs and the program see; counts it in its context.
void show_to_program(Qp& qp, ibv_pd* pd);

}  // namespace dapple::soft::verbs

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Notes in Holders the objects that verbs make.
#pragma once

#include <infiniband/verbs.h>

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::explain {

// The verb has made this object.
void note_made(ibv_pd* pd);
void note_made(ibv_td* td);
void note_made(ibv_dm* dm);
void note_made(ibv_counters* counters);
void note_made(provider::CompletionCounter* counter);
void note_made(provider::DmaHandle* handle);
void note_made(ibv_mr* mr);
void note_made(ibv_mw* mw);
void note_made(ibv_cq* cq);
void note_made(ibv_cq_ex* cq);
// libibverbs notes the channel in the completion queue only later. `verb`: a literal, as for Holders.
void note_made(ibv_cq* cq, const char* verb, const ibv_comp_channel* channel);
void note_made(ibv_srq* srq);
void note_made(ibv_xrcd* xrcd);
void note_made(ibv_qp* qp);
void note_made(ibv_ah* ah);
void note_made(ibv_flow* flow);
void note_made(ibv_wq* wq);
void note_made(ibv_rwq_ind_table* table);
// ibv_qp_attach_comp_cntr() has succeeded.
void note_attached(ibv_qp* qp, const provider::CompletionCounter* counter);
// The object at this address is gone.
void note_end(const void* object);

}  // namespace dapple::soft::explain

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a report calls the object of a call: the first argument of a verb.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::explain {

// "queue pair 0x11 of dapple0".
std::string name_of(const ibv_context* context);
std::string name_of(const ibv_pd* pd);
std::string name_of(const ibv_td* td);
std::string name_of(const ibv_dm* dm);
std::string name_of(const ibv_mr* mr);
std::string name_of(const ibv_mw* mw);
std::string name_of(const ibv_cq* cq);
std::string name_of(const ibv_srq* srq);
std::string name_of(const ibv_xrcd* xrcd);
std::string name_of(const ibv_qp* qp);
std::string name_of(const ibv_ah* ah);
std::string name_of(const ibv_counters* counters);
std::string name_of(const provider::CompletionCounter* counter);
std::string name_of(const provider::DmaHandle* handle);
std::string name_of(const ibv_flow* flow);
std::string name_of(const ibv_wq* wq);
std::string name_of(const ibv_rwq_ind_table* table);

}  // namespace dapple::soft::explain

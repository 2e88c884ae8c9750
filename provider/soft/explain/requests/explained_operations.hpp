// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::explain {

// The same operations for a program under dapple-run --explain or --check: each call that fails is reported. Only the
// first call's arguments count. `data_path_explains`: posts and polls (Program::kExplained) do so themselves, so that a
// call without a failure costs next to nothing more.
const Operations& explained_operations(const Operations& operations, bool data_path_explains);

// Such a post or poll calls these when it fails, when a completion has failed, and for datagrams, which may reach
// nobody. It has left the reason of its own failure as the refusal of the thread (refuse()).
[[gnu::cold]] void explain_poll(ibv_cq* cq, int polled, const ibv_wc* completions);
[[gnu::cold]] void explain_receives(ibv_qp* qp, int error);
[[gnu::cold]] void explain_receives(ibv_srq* srq, int error);
// `bad`: the first request that was not posted; null if all were.
[[gnu::cold]] void explain_sends(ibv_qp* qp, const ibv_send_wr* requests, const ibv_send_wr* bad, int error);

}  // namespace dapple::soft::explain

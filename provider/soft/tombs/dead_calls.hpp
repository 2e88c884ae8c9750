// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that libibverbs finds in an object itself.
#pragma once

#include "provider/soft/abi/structures.hpp"

namespace dapple::soft::tombs {

// The object has ended. Its functions now report this, and do nothing else.
void end_calls(abi::Qp& qp);
void end_calls(abi::Cq& cq);
void end_calls(ibv_wq& wq);
void end_calls(ibv_dm& dm);

}  // namespace dapple::soft::tombs

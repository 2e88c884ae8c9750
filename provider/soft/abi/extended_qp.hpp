// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The last members of an extended queue pair's structure, which depend on the release of libibverbs.
#pragma once

#include "provider/soft/abi/structures.hpp"

namespace dapple::soft::abi {

using WrFlush = void (*)(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, size_t length, uint8_t type, uint8_t level);

// Tells whether a libibverbs, which dlopen() has given, has ibv_wr_flush().
bool has_wr_flush(void* library);

// From now on ibv_qp_to_qp_ex() returns the queue pair's ibv_qp_ex. `flush`, which may be null, becomes its wr_flush if
// the libibverbs of the queue pair has that member.
void publish_qp_ex(Qp& qp, WrFlush flush, bool has_wr_flush);

}  // namespace dapple::soft::abi

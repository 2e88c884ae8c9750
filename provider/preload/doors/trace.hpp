// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_TRACE of a program that uses rdma_cm: a line for each command, after it, and for each event that it gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dapple::doors {

// `number`: RDMA_USER_CM_CMD_*. `error`: 0 or the program's errno.
void trace_command(uint32_t number, uint32_t id, int error);
// `answer`: to RDMA_USER_CM_CMD_GET_EVENT.
void trace_event(std::span<const uint8_t> answer);

}  // namespace dapple::doors

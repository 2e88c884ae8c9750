// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A command that a program writes to rdma_cm, on its way to dappled.
#pragma once

#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/protocol/cm_messages.hpp"

namespace dapple::doors {

struct RdmaCmCommand {
  rdma_ucm_cmd_hdr header = {};
  uint64_t response = 0;  // the program's address, writable for header.out bytes; 0: the command has no response
  uint32_t id = 0;        // 0 for commands that are not about one
  uint32_t qp_state = 0;  // INIT_QP_ATTR
  uint32_t source = 0;    // MIGRATE_ID: the descriptor of the channel where the id is
};

// Copies the command from the program's memory into `request`. 0, or the kernel's errno. A shorter struct of an older
// librdmacm is padded with zeros.
int read_command(const void* bytes, size_t size, RdmaCmCommand& command, soft::CmCommandRequest& request);

// The function of librdmacm that gives this command; null for librdmacm's own questions.
const char* function_of(uint32_t command);

}  // namespace dapple::doors

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* RDMA Writes and RDMA Reads of any length, in pieces that the device supports. */
#pragma once

#include <stdint.h>

#include "session.h"

enum direction { kRdmaWrite, kRdmaRead };

/* Moves LENGTH bytes between LOCAL at OFFSET and the peer's memory, TIMES over, and waits until all of it is done. */
void transfer(struct session* session, enum direction direction, const struct region* local, size_t offset,
              uint64_t remote_address, DAT_RMR_CONTEXT rmr_context, uint64_t length, unsigned times);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The client's output: facts about the device, then a line for each size. */
#pragma once

#include <stdint.h>

#include "session.h"

struct row {
  uint64_t size;
  unsigned ranges; /* how many offsets were tried */
  uint64_t
      bytes_verified; /* bytes checked: by the server after the RDMA Writes, and by the client after the RDMA Reads */
  double write_mb_s;
  double read_mb_s;
};

void table_print_device(const struct session* session);
void table_print_header(void);
void table_print_row(const struct row* row);

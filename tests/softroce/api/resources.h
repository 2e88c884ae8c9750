/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * The resources of this process, and those of all processes on the RDMA device, so that a test can check that nothing
 * was left behind.
 */
#include <stdbool.h>
#include <stddef.h>

#include "tests/softroce/descriptors.h"

struct resources {
  struct descriptors fds;
  int threads;
  size_t heap_bytes; /* allocated and not freed */
  size_t rss_bytes;
  char device[256]; /* the kernel's counts of PDs, CQs, QPs, MRs, ids and contexts; dappled's of programs and slots */
};

void count_resources(struct resources* out);

/*
 * True if there is no more than before, except some memory. The kernel may take a moment to release the resources of a
 * killed process, so this checks for up to ten seconds. Prints the differences.
 */
bool no_more_than(const struct resources* before, size_t heap_allowance, size_t rss_allowance);

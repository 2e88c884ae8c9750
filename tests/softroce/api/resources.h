/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_TESTS_SOFTROCE_RESOURCES_H
#define DAPPLE_TESTS_SOFTROCE_RESOURCES_H

/*
 * What this process holds, and what all processes hold of the RDMA device, so that a test can tell that nothing was
 * left behind.
 */
#include <stdbool.h>
#include <stddef.h>

struct resources {
  int fds;         /* but for udp_sockets */
  int udp_sockets; /* of the software device, which keeps one for each slot that a peer of its has had */
  int threads;
  size_t heap_bytes; /* allocated and not freed */
  size_t rss_bytes;
  char device[256]; /* the kernel's counts of PDs, CQs, QPs, MRs, ids and contexts; dappled's of programs and slots */
};

void count_resources(struct resources* out);

/*
 * Whether there is no more than before, memory with some allowance. What a process that was killed held may take the
 * kernel a moment, so this looks again for up to ten seconds. Says what differs.
 */
bool no_more_than(const struct resources* before, size_t heap_allowance, size_t rss_allowance);

#endif

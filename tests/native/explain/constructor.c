/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * A library whose constructor makes a call that fails, while dlopen() holds the lock of the dynamic linker. */
#include <infiniband/verbs.h>

extern struct ibv_context* device; /* of the program that loads it */
extern int query_error;

__attribute__((constructor)) static void query(void) {
  struct ibv_port_attr port;
  query_error = ibv_query_port(device, 2, &port);
}

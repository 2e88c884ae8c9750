/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include <stdint.h>

struct client_options {
  const char* ia_name; /* NULL: the first IA that opens */
  const char* server;  /* the server's address or host name */
  uint16_t port;
  unsigned timeout_s;
  uint64_t largest_size;
};

/* Runs all sizes against a server and prints the table. Returns only if everything was right. */
void run_client(const struct client_options* options);

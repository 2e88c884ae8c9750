/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include <stdint.h>

struct server_options {
  const char* ia_name; /* NULL: the first IA that opens */
  uint16_t port;
  unsigned timeout_s;
  uint64_t largest_size;
  int address_fd; /* descriptor for our address once we listen, or -1 to print it for the user */
};

/* Serves one client. Returns only if everything was right. */
void run_server(const struct server_options* options);

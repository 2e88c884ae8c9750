/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * The software device, for programs whose two ends are in one process. */
#pragma once

#include <infiniband/verbs.h>
#include <string.h>

#include "tests/native/explain/mistake.h"

static struct ibv_context* device;
static union ibv_gid gid; /* the first one of an IPv4 address */
static int gid_index = -1;

static void open_dapple(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  MUST(list != NULL);
  for (int i = 0; list[i] != NULL && device == NULL; i++) {
    if (strncmp(ibv_get_device_name(list[i]), "dapple", 6) == 0) device = ibv_open_device(list[i]);
  }
  MUST(device != NULL);
  ibv_free_device_list(list);
  for (int i = 0; i < 8 && gid_index < 0; i++) {
    if (ibv_query_gid(device, 1, i, &gid) == 0 && gid.raw[10] == 0xFF && gid.raw[11] == 0xFF) gid_index = i;
  }
  MUST(gid_index >= 0);
}

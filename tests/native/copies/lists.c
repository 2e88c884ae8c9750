/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* lists: prints the number of devices. It is linked to libibverbs.a. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  printf("%d devices\n", count);
  ibv_free_device_list(devices);
  return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A program for dapple-run --enumerate, with a planted reaction to the failure of each call: it ends with an error if
 * it gets no protection domain, it does without a second one, it waits for ever for a completion queue, and it does not
 * check its region.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

static char memory[64];

int main(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  struct ibv_context* device = list != NULL && count > 0 ? ibv_open_device(list[0]) : NULL;
  if (device == NULL) return 3;
  struct ibv_pd* pd = ibv_alloc_pd(device);
  if (pd == NULL) {
    fprintf(stderr, "no protection domain\n");
    return 4;
  }
  struct ibv_pd* spare = ibv_alloc_pd(device);
  if (spare != NULL) ibv_dealloc_pd(spare);
  while (ibv_create_cq(device, 1, NULL, NULL, 0) == NULL) pause();
  struct ibv_mr* mr = NULL;
  for (int i = 0; i < 5; ++i) mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
  printf("key %u\n", mr->lkey);
  return 0;
}

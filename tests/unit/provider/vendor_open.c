/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* A program that opens devices through its vendor's library; run with the preload library loaded before that. */
#include <infiniband/verbs.h>
#include <stdio.h>

struct ibv_context* mlx5dv_open_device(struct ibv_device* device, void* attributes);

int main(void) {
  struct ibv_device device = {.name = "mlx5_7"};
  int attributes = 0;
  const struct ibv_context* refused = mlx5dv_open_device(&device, NULL);
  const struct ibv_context* context = mlx5dv_open_device(&device, &attributes);
  printf("refused: %d, opened: %d\n", !refused, context && context->device == &device);
  return 0;
}

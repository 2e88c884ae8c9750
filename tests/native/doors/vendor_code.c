// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Code for mlx5 asks mlx5dv about a device that has a ConnectX's identity, and gets mlx5dv's own refusals. Runs under
// dapple-run --as connectx7.
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int good, const char* what) {
  if (good) return;
  printf("wrong: %s\n", what);
  failures++;
}

int main(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (list == NULL || list[0] == NULL) return 1;
  check(strncmp(ibv_get_device_name(list[0]), "mlx5_", 5) == 0, "the name");
  check(!mlx5dv_is_supported(list[0]), "mlx5dv_is_supported()");
  struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
  errno = 0;
  check(mlx5dv_open_device(list[0], &attr) == NULL && errno == EOPNOTSUPP, "mlx5dv_open_device()");
  struct ibv_context* context = ibv_open_device(list[0]);
  if (context == NULL) return 1;
  struct mlx5dv_context capabilities = {0};
  check(mlx5dv_query_device(context, &capabilities) == EOPNOTSUPP, "mlx5dv_query_device()");
  errno = 0;
  check(mlx5dv_devx_umem_reg(context, NULL, 4096, 0) == NULL && errno == EOPNOTSUPP, "mlx5dv_devx_umem_reg()");
  ibv_close_device(context);
  ibv_free_device_list(list);
  return failures == 0 ? 0 : 1;
}

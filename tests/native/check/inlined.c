// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A region that is left at exit. libibverbs' header inlines a function here, and the compiler another one.
#include <infiniband/verbs.h>
#include <stdio.h>

static char memory[4096];

__attribute__((always_inline)) static inline struct ibv_mr* register_all(struct ibv_pd* pd, int access) {
  return ibv_reg_mr(pd, memory, sizeof memory, access);  // the line of the registration
}

int main(int count, char** words) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = list && list[0] ? ibv_open_device(list[0]) : NULL;
  struct ibv_pd* pd = context ? ibv_alloc_pd(context) : NULL;
  if (!pd || !register_all(pd, count > 1 ? IBV_ACCESS_LOCAL_WRITE : 0)) return 1;
  ibv_free_device_list(list);
  puts(words[0]);
  return 0;
}

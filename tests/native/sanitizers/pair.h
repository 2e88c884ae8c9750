/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Queue pairs of one program that are connected to each other. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/queue_pairs.h"

enum {
  kSize = 64,
  kTimeout = 14,
  kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

static struct ibv_cq* cq;   /* of the next queue pair */
static struct ibv_srq* srq; /* the same; NULL: none */

static void check(bool good, const char* call) {
  if (good) return;
  fprintf(stderr, "FAIL: %s\n", call);
  exit(3);
}

static void open_with_queue(void) {
  open_device();
  cq = ibv_create_cq(device, 8, NULL, NULL, 0);
  check(cq != NULL, "ibv_create_cq");
}

static struct ibv_qp* make_queue_pair(void) {
  const struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .srq = srq,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = kSize},
  };
  return create_queue_pair(init, kRights);
}

struct buffer {
  char* bytes;
  struct ibv_mr* mr;
};

/* Its bytes are undefined. */
static struct buffer make_buffer(void) {
  struct buffer made = {malloc(kSize), NULL};
  check(made.bytes != NULL, "malloc");
  made.mr = ibv_reg_mr(pd, made.bytes, kSize, kRights);
  check(made.mr != NULL, "ibv_reg_mr");
  return made;
}

static struct ibv_sge segment_of(const struct buffer* buffer) {
  const struct ibv_sge segment = {(uintptr_t)buffer->bytes, kSize, buffer->mr->lkey};
  return segment;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Queue pairs of one program that are connected to each other. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  kSize = 64,
  kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

static struct ibv_context* device;
static union ibv_gid gid;
static struct ibv_pd* pd;
static struct ibv_cq* cq;   /* of the next queue pair */
static struct ibv_srq* srq; /* the same; NULL: none */

static void check(bool good, const char* call) {
  if (good) return;
  fprintf(stderr, "FAIL: %s\n", call);
  exit(3);
}

static void open_device(void) {
  int devices = 0;
  struct ibv_device** list = ibv_get_device_list(&devices);
  check(list != NULL && devices > 0, "ibv_get_device_list");
  device = ibv_open_device(list[0]);
  check(device != NULL, "ibv_open_device");
  check(ibv_query_gid(device, 1, 0, &gid) == 0, "ibv_query_gid");
  pd = ibv_alloc_pd(device);
  cq = ibv_create_cq(device, 8, NULL, NULL, 0);
  check(pd != NULL && cq != NULL, "ibv_create_cq");
}

static struct ibv_qp* make_queue_pair(void) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .srq = srq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = kSize},
  };
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  return qp;
}

static void connect_to(struct ibv_qp* qp, const struct ibv_qp* peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}},
  };
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "RTS");
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Queue pairs of one program that are connected to each other, on the first device. The file that includes this defines
 * check(), which ends the program unless `good`.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

static void check(bool good, const char* call);

static struct ibv_context* device;
static union ibv_gid gid;
/* The first address. The link-local GID before it may have no route. */
enum { kGidIndex = 1 };
static struct ibv_pd* pd;

static void open_device(void) {
  int devices = 0;
  struct ibv_device** list = ibv_get_device_list(&devices);
  check(list != NULL && devices > 0, "ibv_get_device_list");
  device = ibv_open_device(list[0]);
  check(device != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  check(ibv_query_gid(device, 1, kGidIndex, &gid) == 0, "ibv_query_gid");
  pd = ibv_alloc_pd(device);
  check(pd != NULL, "ibv_alloc_pd");
}

/* With these rights for the peer. */
static void to_init(struct ibv_qp* qp, unsigned int rights) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "ibv_modify_qp to INIT");
}

/* In INIT, with these rights for the peer. */
static struct ibv_qp* create_queue_pair(struct ibv_qp_init_attr init, unsigned int rights) {
  init.qp_type = IBV_QPT_RC;
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  to_init(qp, rights);
  return qp;
}

/* Brings `qp` to RTS. An acknowledgement may take 4.096 us * 2^timeout. */
static void connect_to(struct ibv_qp* qp, const struct ibv_qp* peer, uint8_t timeout) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = kGidIndex, .hop_limit = 64}},
  };
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = timeout;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "ibv_modify_qp to RTS");
}

static void connect_pair(struct ibv_qp* front, struct ibv_qp* back, uint8_t timeout) {
  connect_to(front, back, timeout);
  connect_to(back, front, timeout);
}

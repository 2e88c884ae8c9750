/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "ping_pong.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      printf("FAILED line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

enum { kRounds = 100, kSize = 64 };

struct Side {
  struct ibv_qp* qp;
  struct ibv_cq* cq;
};

static struct ibv_mr* region;
static char memory[2][kSize];

static int wait_for(struct ibv_cq* cq, enum ibv_wc_opcode opcode) {
  const time_t end = time(NULL) + 20;
  struct ibv_wc completion;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &completion)) == 0) CHECK(time(NULL) < end);
  CHECK(count == 1 && completion.status == IBV_WC_SUCCESS && completion.opcode == opcode);
  return 0;
}

static int create(struct Side* side, struct ibv_pd* pd) {
  side->cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0);
  CHECK(side->cq != NULL);
  struct ibv_qp_init_attr_ex attr = {
      .send_cq = side->cq,
      .recv_cq = side->cq,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = pd,
      .send_ops_flags = IBV_QP_EX_WITH_SEND,
  };
  side->qp = ibv_create_qp_ex(pd->context, &attr);
  CHECK(side->qp != NULL);
  return 0;
}

static int connect_to(struct Side* side, const struct Side* other, const union ibv_gid* gid, uint8_t gid_index) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  CHECK(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = other->qp->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = gid_index, .hop_limit = 1}},
  };
  CHECK(ibv_modify_qp(side->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr =
      (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  CHECK(ibv_modify_qp(side->qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0);
  return 0;
}

static int send_to(struct Side* from, struct Side* to, int round) {
  struct ibv_sge into = {.addr = (uintptr_t)memory[1], .length = kSize, .lkey = region->lkey};
  struct ibv_recv_wr receive = {.sg_list = &into, .num_sge = 1};
  struct ibv_recv_wr* bad;
  CHECK(ibv_post_recv(to->qp, &receive, &bad) == 0);
  snprintf(memory[0], kSize, "round %d", round);
  struct ibv_qp_ex* extended = ibv_qp_to_qp_ex(from->qp);
  CHECK(extended != NULL);
  ibv_wr_start(extended);
  extended->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(extended);
  ibv_wr_set_sge(extended, region->lkey, (uintptr_t)memory[0], kSize);
  CHECK(ibv_wr_complete(extended) == 0);
  if (wait_for(to->cq, IBV_WC_RECV) != 0 || wait_for(from->cq, IBV_WC_SEND) != 0) return 1;
  CHECK(strcmp(memory[0], memory[1]) == 0);
  return 0;
}

static int exchange(struct ibv_context* context) {
  union ibv_gid gid;
  static const unsigned char ipv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  int index = 0;
  do {
    CHECK(ibv_query_gid(context, 1, index, &gid) == 0);
  } while (memcmp(&gid, ipv4, sizeof ipv4) != 0 && ++index < 16);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  CHECK(pd != NULL);
  region = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  CHECK(region != NULL);
  struct Side sides[2];
  if (create(&sides[0], pd) != 0 || create(&sides[1], pd) != 0) return 1;
  if (connect_to(&sides[0], &sides[1], &gid, (uint8_t)index) != 0) return 1;
  if (connect_to(&sides[1], &sides[0], &gid, (uint8_t)index) != 0) return 1;
  for (int round = 0; round < kRounds; round++) {
    if (send_to(&sides[round & 1], &sides[(round & 1) ^ 1], round) != 0) return 1;
  }
  for (int i = 0; i < 2; i++) CHECK(ibv_destroy_qp(sides[i].qp) == 0 && ibv_destroy_cq(sides[i].cq) == 0);
  CHECK(ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(pd) == 0);
  return 0;
}

static int resolve(void) {
  struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(7174)};
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  CHECK(channel != NULL);
  struct rdma_cm_id* id;
  CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr*)&self, 2000) == 0);
  struct rdma_cm_event* event;
  CHECK(rdma_get_cm_event(channel, &event) == 0);
  CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->verbs != NULL);
  CHECK(rdma_ack_cm_event(event) == 0 && rdma_destroy_id(id) == 0);
  rdma_destroy_event_channel(channel);
  return 0;
}

int ping_pong(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  CHECK(devices != NULL && count == 1 && strncmp(ibv_get_device_name(devices[0]), "dapple", 6) == 0);
  struct ibv_context* context = ibv_open_device(devices[0]);
  CHECK(context != NULL);
  ibv_free_device_list(devices);
  if (exchange(context) != 0) return 1;
  CHECK(ibv_close_device(context) == 0);
  return resolve();
}

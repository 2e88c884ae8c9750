/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A program for dapple-run --enumerate, with a planted reaction to the failure of each call: it ends with an error if
 * it gets no protection domain, it does without a second one, it waits for ever for a completion queue, it does not
 * check its region, and it waits for ever for a Send that has failed; it checks its receive.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

static char memory[64];

/* A queue pair that is connected to itself. */
static struct ibv_qp* connect_to_self(struct ibv_pd* pd, struct ibv_cq* cq) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  if (qp == NULL || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return NULL;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.min_rnr_timer = 1;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.grh.sgid_index = 1; /* the first address */
  if (ibv_query_gid(pd->context, 1, 1, &attr.ah_attr.grh.dgid) != 0) return NULL;
  const int to_receive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &attr, to_receive) != 0) return NULL;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  const int to_send =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp, &attr, to_send) == 0 ? qp : NULL;
}

/* The exit code of the program. */
static int send_to_self(struct ibv_pd* pd, struct ibv_cq* cq, const struct ibv_mr* mr) {
  struct ibv_qp* qp = connect_to_self(pd, cq);
  if (qp == NULL) return 5;
  struct ibv_sge piece = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &piece, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad_send;
  if (ibv_post_recv(qp, &receive, &bad_receive) != 0 || ibv_post_send(qp, &send, &bad_send) != 0) return 6;
  for (int sent = 0, received = 0; !sent || !received;) {
    struct ibv_wc completion;
    const int count = ibv_poll_cq(cq, 1, &completion);
    if (count < 0) return 7;
    if (count == 0) continue;
    if (completion.opcode == IBV_WC_RECV && completion.status != IBV_WC_SUCCESS) return 8;
    if (completion.opcode == IBV_WC_RECV) received = 1;
    if (completion.opcode == IBV_WC_SEND && completion.status == IBV_WC_SUCCESS) sent = 1;
  }
  return 0;
}

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
  struct ibv_cq* cq;
  while ((cq = ibv_create_cq(device, 2, NULL, NULL, 0)) == NULL) pause();
  struct ibv_mr* mr = NULL;
  /* Without "volatile" clang makes five calls of it, at five places. */
  for (volatile int i = 0; i < 5; ++i) mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  printf("key %u\n", mr->lkey);
  return send_to_self(pd, cq, mr);
}

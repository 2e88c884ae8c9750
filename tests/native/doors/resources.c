/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * resources NAME PORT PDS [paged]: has objects of each kind, rdma_cm ids with PORT and the next one, and PDS more
 * protection domains. Prints "ready", the number of a connected queue pair and the key of a region, and waits for the
 * end of its input. NAME becomes the program's name. With "paged", the program has used an on-demand region, too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      printf("FAILED line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static char memory[4096];

static struct ibv_qp* make_qp(struct ibv_pd* pd, struct ibv_cq* cq, enum ibv_qp_type type) {
  struct ibv_qp_init_attr attr = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .cap = {.max_send_wr = 1, .max_recv_wr = 3, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = type};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  CHECK(qp != NULL);
  return qp;
}

static void connect_to_itself(struct ibv_qp* qp, uint32_t send_psn) {
  union ibv_gid gid;
  const union ibv_gid none = {{0}};
  int index = 1; /* packets have no route from the link-local GID */
  do {
    CHECK(ibv_query_gid(qp->context, 1, index, &gid) == 0);
  } while (memcmp(&gid, &none, sizeof gid) == 0 && ++index < 16);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = qp->qp_num,
      .rq_psn = 77,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = (uint8_t)index, .hop_limit = 1}},
  };
  CHECK(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr =
      (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = send_psn, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  CHECK(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void make_ids(uint16_t port) {
  struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct rdma_event_channel* channel = rdma_create_event_channel();
  CHECK(channel != NULL);
  struct rdma_cm_id *listener, *bound;
  CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(listener, (struct sockaddr*)&self) == 0);
  CHECK(rdma_listen(listener, 4) == 0);
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  self.sin_port = htons(port + 1);
  CHECK(rdma_create_id(channel, &bound, NULL, RDMA_PS_UDP) == 0);
  CHECK(rdma_bind_addr(bound, (struct sockaddr*)&self) == 0);
}

static enum ibv_wc_status send_page(struct ibv_qp* qp, struct ibv_mr* region, char* page, char* to) {
  struct ibv_sge from = {(uintptr_t)page, 100, region->lkey}, into = {(uintptr_t)to, 100, region->lkey};
  struct ibv_recv_wr receive = {.sg_list = &into, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr send = {
      .wr_id = 1, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad_send;
  CHECK(ibv_post_recv(qp, &receive, &bad_receive) == 0 && ibv_post_send(qp, &send, &bad_send) == 0);
  struct ibv_wc completion = {.wr_id = 0};
  while (completion.wr_id == 0) CHECK(ibv_poll_cq(qp->send_cq, 1, &completion) >= 0);
  return completion.status;
}

/* Of 8 pages: two are used, twice; three come by advice; the first one goes. */
static void use_on_demand(struct ibv_pd* pd, struct ibv_cq* cq) {
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 8 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  struct ibv_mr* region = ibv_reg_mr(pd, pages, 8 * size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  CHECK(region != NULL);
  struct ibv_qp* qp = make_qp(pd, cq, IBV_QPT_RC);
  connect_to_itself(qp, 77);
  CHECK(send_page(qp, region, pages, pages + size) == IBV_WC_SUCCESS);
  CHECK(send_page(qp, region, pages, pages + size) == IBV_WC_SUCCESS);
  struct ibv_sge later = {(uintptr_t)pages + 4 * size, (uint32_t)(3 * size), region->lkey};
  CHECK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &later, 1) == 0);
  CHECK(munmap(pages, size) == 0);
  CHECK(send_page(qp, region, pages, pages + size) == IBV_WC_LOC_PROT_ERR);
}

int main(int argc, char** argv) {
  CHECK(argc >= 4 && prctl(PR_SET_NAME, argv[1]) == 0);
  struct ibv_device** devices = ibv_get_device_list(NULL);
  CHECK(devices != NULL && devices[0] != NULL);
  struct ibv_context* context = ibv_open_device(devices[0]);
  CHECK(context != NULL);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  CHECK(pd != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 100, NULL, NULL, 0);
  CHECK(cq != NULL);
  struct ibv_mr* region = ibv_reg_mr(pd, memory, 1234, IBV_ACCESS_LOCAL_WRITE);
  CHECK(region != NULL);
  struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
  CHECK(ibv_create_srq(pd, &srq_attr) != NULL);
  struct ibv_qp* connected = make_qp(pd, cq, IBV_QPT_RC);
  connect_to_itself(connected, 78);
  make_qp(pd, cq, IBV_QPT_UD);
  make_ids((uint16_t)atoi(argv[2]));
  for (int i = atoi(argv[3]); i > 0; i--) CHECK(ibv_alloc_pd(context) != NULL);
  if (argc == 5) use_on_demand(pd, cq);
  printf("ready %u 0x%x\n", connected->qp_num, region->lkey);
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}

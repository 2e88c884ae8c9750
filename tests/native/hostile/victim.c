/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * victim ADDRESS: queue pairs that a test attacks. They are connected to a peer that does not exist, at the same
 * address. It prints the number of each, and its region, and then obeys lines on standard input: stat        prints a
 * line of JSON: received messages, those with unknown bytes, those that were wrong in another way, the states, the
 * first word of the region again NAME  resets a queue pair and connects it again Each message has the byte 'M', and
 * then one other byte again and again. Bytes around each receive and around the region must never change.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  QPS = 4,
  RECEIVES = 64,
  GUARD = 64,
  ROOM = 40 + 4096 + 512,
  SLOT = ROOM + 2 * GUARD,
  REGION = 1 << 20,
  MARK = 0xA5
};

static const struct {
  const char* name;
  enum ibv_qp_type type;
  int receives;
} kinds[QPS] = {{"rc", IBV_QPT_RC, 1}, {"uc", IBV_QPT_UC, 1}, {"ud", IBV_QPT_UD, 1}, {"idle", IBV_QPT_UD, 0}};

static struct ibv_context* context;
static int gid_index;
static union ibv_gid gid;
static struct ibv_cq* cqs[QPS];
static struct ibv_qp* qps[QPS];
static unsigned char receives[QPS][RECEIVES][SLOT];
static struct ibv_mr* receive_regions[QPS];
static unsigned char region[REGION + 2 * GUARD] __attribute__((aligned(64)));
static struct ibv_mr* mr;
static long good[QPS], unknown[QPS], wrong[QPS];

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int is_intact(const unsigned char* guard) {
  for (int i = 0; i < GUARD; i++) {
    if (guard[i] != MARK) return 0;
  }
  return 1;
}

static void post(int which, int slot) {
  unsigned char* at = receives[which][slot];
  memset(at, MARK, SLOT);
  struct ibv_sge sge = {(uintptr_t)at + GUARD, ROOM, receive_regions[which]->lkey};
  struct ibv_recv_wr request = {.wr_id = (uint64_t)slot, .sg_list = &sge, .num_sge = 1}, *bad;
  if (ibv_post_recv(qps[which], &request, &bad) != 0) fail("ibv_post_recv");
}

/* Bytes in front of a message. */
static uint32_t before(int which) {
  return kinds[which].type == IBV_QPT_UD ? 40 : 0;
}

static int is_right(int which, const struct ibv_wc* wc) {
  const unsigned char* at = receives[which][wc->wr_id];
  if (!is_intact(at) || !is_intact(at + SLOT - GUARD)) return 0;
  return wc->opcode != IBV_WC_RECV || (wc->byte_len >= before(which) && wc->byte_len <= ROOM);
}

static int is_known(int which, const struct ibv_wc* wc) {
  if (wc->opcode != IBV_WC_RECV) return 1;
  const unsigned char* bytes = receives[which][wc->wr_id] + GUARD + before(which);
  const uint32_t size = wc->byte_len - before(which);
  if (size > 0 && bytes[0] != 'M') return 0;
  for (uint32_t i = 2; i < size; i++) {
    if (bytes[i] != bytes[1]) return 0;
  }
  return 1;
}

static void poll_all(void) {
  for (int i = 0; i < QPS; i++) {
    struct ibv_wc wc;
    while (ibv_poll_cq(cqs[i], 1, &wc) > 0) {
      if (wc.status != IBV_WC_SUCCESS) continue;
      (*(!is_right(i, &wc) ? &wrong[i] : is_known(i, &wc) ? &good[i] : &unknown[i]))++;
      post(i, (int)wc.wr_id);
    }
  }
}

static void modify(int which, struct ibv_qp_attr attr, int mask) {
  if (ibv_modify_qp(qps[which], &attr, IBV_QP_STATE | mask) != 0) fail("ibv_modify_qp");
}

static void connect_again(int which) {
  const int is_ud = kinds[which].type == IBV_QPT_UD, is_rc = kinds[which].type == IBV_QPT_RC;
  modify(which, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
  poll_all();
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11223344};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (is_rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
  modify(which, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
  for (int slot = 0; kinds[which].receives && slot < RECEIVES; slot++) post(which, slot);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = 0x777000, .rq_psn = 0xFFFFF0};
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
  attr.ah_attr.grh = (struct ibv_global_route){.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64};
  const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  modify(which, attr, (is_ud ? 0 : connected) | (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
  attr =
      (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
  const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  modify(which, attr, IBV_QP_SQ_PSN | (is_rc ? reliable : 0));
}

static int state_of(int which) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  return ibv_query_qp(qps[which], &attr, IBV_QP_STATE, &init) == 0 ? (int)attr.qp_state : -1;
}

static void print_stat(void) {
  uint64_t word;
  memcpy(&word, region + GUARD, sizeof word);
  printf("{");
  for (int i = 0; i < QPS; i++) {
    printf("\"%s\": {\"good\": %ld, \"unknown\": %ld, \"wrong\": %ld, ", kinds[i].name, good[i], unknown[i], wrong[i]);
    printf("\"state\": %d}, ", state_of(i));
  }
  printf("\"intact\": %d, \"word\": %llu}\n", is_intact(region) && is_intact(region + GUARD + REGION),
         (unsigned long long)word);
}

/* Opens the device that has the address. */
static void open_device(const char* address) {
  unsigned char wanted[16] = {[10] = 0xFF, [11] = 0xFF};
  if (inet_pton(AF_INET, address, wanted + 12) != 1 && inet_pton(AF_INET6, address, wanted) != 1) fail("inet_pton");
  struct ibv_device** list = ibv_get_device_list(NULL);
  for (int i = 0; list != NULL && list[i] != NULL; i++) {
    context = ibv_open_device(list[i]);
    for (gid_index = 0; context != NULL && ibv_query_gid(context, 1, gid_index, &gid) == 0; gid_index++) {
      if (memcmp(&gid, wanted, sizeof gid) == 0) return;
    }
    if (context != NULL) ibv_close_device(context);
  }
  fprintf(stderr, "no device has the address\n");
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  open_device(argv[1]);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  memset(region, MARK, GUARD);
  memset(region + GUARD + REGION, MARK, GUARD);
  mr = ibv_reg_mr(pd, region + GUARD, REGION,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  if (mr == NULL) fail("ibv_reg_mr");
  printf("region %llx %x %d\n", (unsigned long long)(uintptr_t)(region + GUARD), mr->rkey, REGION);
  for (int i = 0; i < QPS; i++) {
    cqs[i] = ibv_create_cq(context, 4 * RECEIVES, NULL, NULL, 0);
    receive_regions[i] = ibv_reg_mr(pd, receives[i], sizeof receives[i], IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = cqs[i], .recv_cq = cqs[i], .qp_type = kinds[i].type, .cap = {4, RECEIVES, 1, 1, 0}};
    qps[i] = ibv_create_qp(pd, &init);
    if (qps[i] == NULL) fail("ibv_create_qp");
    printf("%s %x\n", kinds[i].name, qps[i]->qp_num);
  }
  for (int i = 0; i < QPS; i++) connect_again(i);
  printf("ready\n");
  for (;;) {
    poll_all();
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    char line[64];
    if (poll(&input, 1, 0) <= 0) continue;
    const ssize_t size = read(STDIN_FILENO, line, sizeof line - 1);
    if (size <= 0) return 0;
    line[size] = '\0';
    if (strcmp(line, "stat\n") == 0) print_stat();
    for (int i = 0; i < QPS && strncmp(line, "again ", 6) == 0; i++) {
      if (strncmp(line + 6, kinds[i].name, strlen(kinds[i].name)) != 0) continue;
      connect_again(i);
      printf("connected\n");
    }
  }
}

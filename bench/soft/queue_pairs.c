/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-soft-queue-pairs: RDMA Writes of 8 bytes over 1, 10, 100 and 1,000 connected queue pairs of this process in
 * turn, each completed before the next. Prints the memory that a queue pair takes. Under callgrind it writes a file for
 * each count, named "QUEUE-PAIRS WRITES", with the instructions of posting and completing, both ends and all threads
 * included.
 *
 * bench-soft-queue-pairs calls: post_all() posts 16 such Writes, and when all are done, poll_all() takes their
 * completions one by one, and poll_none() polls the empty queue as often. bench/soft/calls counts their instructions.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { kMost = 1000, kWrites = 2000, kDepth = 16, kSize = 8 };

static struct ibv_context* device;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static union ibv_gid gid;
static uint64_t memory[2];
static struct ibv_qp* from[kMost];
static struct ibv_qp* to[kMost];

static void check(int good, const char* call) {
  if (good) return;
  fprintf(stderr, "bench-soft-queue-pairs: %s failed; run it by dapple-run, and raise ulimit -n if it is low\n", call);
  exit(1);
}

static void open_device(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  check(list != NULL && count > 0, "ibv_get_device_list");
  device = ibv_open_device(list[0]);
  check(device != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  check(ibv_query_gid(device, 1, 0, &gid) == 0, "ibv_query_gid");
  pd = ibv_alloc_pd(device);
  check(pd != NULL, "ibv_alloc_pd");
  cq = ibv_create_cq(device, kDepth, NULL, NULL, 0);
  check(cq != NULL, "ibv_create_cq");
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(mr != NULL, "ibv_reg_mr");
}

static struct ibv_qp* make_queue_pair(void) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
  };
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "ibv_modify_qp");
  return qp;
}

static void connect_to(struct ibv_qp* qp, const struct ibv_qp* peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}},
  };
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "ibv_modify_qp");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 20;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "ibv_modify_qp");
}

static void make_pairs(unsigned first, unsigned count) {
  for (unsigned i = first; i < count; i++) {
    from[i] = make_queue_pair();
    to[i] = make_queue_pair();
    connect_to(from[i], to[i]);
    connect_to(to[i], from[i]);
  }
}

static int post(struct ibv_qp* qp) {
  struct ibv_sge sge = {.addr = (uintptr_t)&memory[0], .length = kSize, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = (uintptr_t)&memory[1];
  wr.wr.rdma.rkey = mr->rkey;
  struct ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

static void write_once(struct ibv_qp* qp) {
  check(post(qp) == 0, "ibv_post_send");
  struct ibv_wc wc;
  int count = 0;
  while (count == 0) count = ibv_poll_cq(cq, 1, &wc);
  check(count == 1 && wc.status == IBV_WC_SUCCESS, "an RDMA Write");
}

__attribute__((noinline)) static int post_all(void) {
  int error = 0;
  for (int i = 0; i < kDepth; i++) error |= post(from[0]);
  return error;
}

static int poll_often(void) {
  struct ibv_wc wc;
  int found = 0;
  for (int i = 0; i < kDepth; i++) found += ibv_poll_cq(cq, 1, &wc);
  return found;
}

__attribute__((noinline)) static int poll_all(void) {
  return poll_often() == kDepth;
}

__attribute__((noinline)) static int poll_none(void) {
  return poll_often() == 0;
}

static int count_calls(void) {
  enum { kRounds = 50, kRestMicroseconds = 50000 };
  make_pairs(0, 1);
  write_once(from[0]);
  for (int round = 0; round < kRounds; round++) {
    check(post_all() == 0, "ibv_post_send");
    usleep(kRestMicroseconds);
    check(poll_all(), "ibv_poll_cq");
    check(poll_none(), "ibv_poll_cq");
  }
  printf("%d calls of each\n", kRounds * kDepth);
  return 0;
}

static long resident_kib(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  check(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2, "/proc/self/statm");
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char** argv) {
  open_device();
  if (argc == 2 && strcmp(argv[1], "calls") == 0) return count_calls();
  unsigned made = 0;
  for (unsigned count = 1; count <= kMost; count *= 10) {
    const long before = resident_kib();
    make_pairs(made, count);
    for (unsigned i = 0; i < count; i++) write_once(from[i]);
    if (count == kMost) {
      const long taken = resident_kib() - before;
      printf("%.1f KiB for each queue pair, its rings of %d included\n", (double)taken / (2.0 * (count - made)),
             kDepth);
    }
    made = count;
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < kWrites; i++) write_once(from[i % count]);
    char name[32];
    snprintf(name, sizeof name, "%u %d", count, kWrites);
    CALLGRIND_DUMP_STATS_AT(name);
  }
  return 0;
}

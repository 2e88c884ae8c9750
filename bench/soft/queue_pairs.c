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
 * With "extended" they use ibv_wr_start() and ibv_start_poll(), with "thread" for objects of a thread domain.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "bench/common/queue_pairs.h"

enum { kMax = 1000, kWrites = 2000, kDepth = 16, kSize = 8, kTimeout = 20 };

static struct ibv_cq* cq;
static struct ibv_mr* mr;
static uint64_t memory[2];
static struct ibv_qp* from[kMax];
static struct ibv_qp* to[kMax];

static void check(bool good, const char* call) {
  if (good) return;
  fprintf(stderr, "bench-soft-queue-pairs: %s failed; run it by dapple-run, and raise ulimit -n if it is low\n", call);
  exit(1);
}

static void open_with_queue(void) {
  open_device();
  cq = ibv_create_cq(device, kDepth, NULL, NULL, 0);
  check(cq != NULL, "ibv_create_cq");
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(mr != NULL, "ibv_reg_mr");
}

static struct ibv_qp* make_queue_pair(void) {
  const struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
  };
  return create_queue_pair(init, IBV_ACCESS_REMOTE_WRITE);
}

static void make_pairs(unsigned first, unsigned count) {
  for (unsigned i = first; i < count; i++) {
    from[i] = make_queue_pair();
    to[i] = make_queue_pair();
    connect_pair(from[i], to[i], kTimeout);
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

static struct ibv_cq_ex* extended_cq;

/* The objects of the first pair; with a thread domain, if `in_thread`. */
static void make_extended_pair(bool in_thread) {
  struct ibv_td_init_attr td_attr = {0};
  struct ibv_parent_domain_init_attr domain_attr = {.pd = pd};
  if (in_thread) domain_attr.td = ibv_alloc_td(device, &td_attr);
  check(!in_thread || domain_attr.td != NULL, "ibv_alloc_td");
  struct ibv_pd* domain = ibv_alloc_parent_domain(device, &domain_attr);
  check(domain != NULL, "ibv_alloc_parent_domain");
  struct ibv_cq_init_attr_ex cq_attr = {.cqe = kDepth, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
  extended_cq = ibv_create_cq_ex(device, &cq_attr);
  check(extended_cq != NULL, "ibv_create_cq_ex");
  cq = ibv_cq_ex_to_cq(extended_cq);
  struct ibv_qp_init_attr_ex attr = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = domain,
      .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
  };
  from[0] = ibv_create_qp_ex(device, &attr);
  check(from[0] != NULL, "ibv_create_qp_ex");
  to_init(from[0], 0);
  to[0] = make_queue_pair();
  connect_pair(from[0], to[0], kTimeout);
}

__attribute__((noinline)) static int post_all_extended(void) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(from[0]);
  int error = 0;
  for (int i = 0; i < kDepth; i++) {
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)&memory[1]);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)&memory[0], kSize);
    error |= ibv_wr_complete(qp);
  }
  return error;
}

static int poll_often_extended(void) {
  struct ibv_poll_cq_attr attr = {0};
  int found = 0;
  for (int i = 0; i < kDepth; i++) {
    if (ibv_start_poll(extended_cq, &attr) != 0) continue;
    found += extended_cq->status == IBV_WC_SUCCESS;
    ibv_end_poll(extended_cq);
  }
  return found;
}

__attribute__((noinline)) static int poll_all_extended(void) {
  return poll_often_extended() == kDepth;
}

__attribute__((noinline)) static int poll_none_extended(void) {
  return poll_often_extended() == 0;
}

static int count_calls(const char* way) {
  enum { kRounds = 50, kRestMicroseconds = 50000 };
  const bool is_extended = way != NULL;
  if (is_extended) {
    make_extended_pair(strcmp(way, "thread") == 0);
  } else {
    make_pairs(0, 1);
  }
  write_once(from[0]);
  for (int round = 0; round < kRounds; round++) {
    check((is_extended ? post_all_extended() : post_all()) == 0, "a post");
    usleep(kRestMicroseconds);
    check(is_extended ? poll_all_extended() : poll_all(), "a poll");
    check(is_extended ? poll_none_extended() : poll_none(), "an empty poll");
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
  open_with_queue();
  if (argc >= 2 && strcmp(argv[1], "calls") == 0) return count_calls(argv[2]);
  unsigned made = 0;
  for (unsigned count = 1; count <= kMax; count *= 10) {
    const long before = resident_kib();
    make_pairs(made, count);
    for (unsigned i = 0; i < count; i++) write_once(from[i]);
    if (count == kMax) {
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

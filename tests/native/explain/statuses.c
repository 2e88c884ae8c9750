/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * explain-statuses CASE: makes one request that fails, and prints the status of each completion with an error: first
 * that of the request, then that of the peer's receive. "list" prints the cases. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/native/explain/device.h"
#include "tests/native/explain/mistake.h"

#define PEERS_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | PEERS_RIGHTS | IBV_ACCESS_MW_BIND)
enum { kBytes = 16384, kHalf = kBytes / 2, kDepth = 16, kPsn = 0x123, kQkey = 0x1111, kPatience = 60 };

struct end {
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};

static struct ibv_pd *pd, *other_pd;
static char* buffer;
static struct ibv_mr* region;
static struct end a, b, c;

static struct ibv_sge segment;
static struct ibv_send_wr request;

static void open_device(void) {
  open_dapple();
  MUST((pd = ibv_alloc_pd(device)) != NULL && (other_pd = ibv_alloc_pd(device)) != NULL);
  MUST((buffer = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
  MUST((region = ibv_reg_mr(pd, buffer, kBytes, ALL_RIGHTS)) != NULL);
}

static struct ibv_ah_attr address(void) {
  return (struct ibv_ah_attr){
      .is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}};
}

static void make(struct end* end, enum ibv_qp_type type) {
  MUST((end->cq = ibv_create_cq(device, 4 * kDepth, NULL, NULL, 0)) != NULL);
  struct ibv_qp_init_attr attr = {
      .send_cq = end->cq,
      .recv_cq = end->cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = type,
  };
  MUST((end->qp = ibv_create_qp(pd, &attr)) != NULL);
}

static void connect_to(struct end* end, uint32_t peer) {
  const enum ibv_qp_type type = end->qp->qp_type;
  const int is_rc = type == IBV_QPT_RC;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey, .qp_access_flags = PEERS_RIGHTS};
  if (end == &b && IS("peers-rights")) attr.qp_access_flags = 0;
  MUST(ibv_modify_qp(end->qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                         (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
  const int is_smaller = end == &b && (IS("peers-mtu") || IS("answers-mtu"));
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = is_smaller ? IBV_MTU_512 : IBV_MTU_1024,
      .dest_qp_num = peer,
      .rq_psn = end == &b && IS("psn") ? kPsn + 5 : kPsn,
      .max_dest_rd_atomic = end == &b && IS("no-answers") ? 0 : 4,
      .min_rnr_timer = 1,
      .ah_attr = address(),
  };
  MUST(ibv_modify_qp(end->qp, &attr,
                     IBV_QP_STATE |
                         (type == IBV_QPT_UD ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                         (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = 8,
                              .retry_cnt = 1,
                              .rnr_retry = 1,
                              .sq_psn = kPsn,
                              .max_rd_atomic = end == &a && IS("no-reads") ? 0 : 4};
  MUST(ibv_modify_qp(
           end->qp, &attr,
           IBV_QP_STATE | IBV_QP_SQ_PSN |
               (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
}

static void make_pair(enum ibv_qp_type type) {
  make(&a, type);
  make(&b, type);
  connect_to(&a, b.qp->qp_num);
  connect_to(&b, a.qp->qp_num);
}

static void receive(uint32_t bytes, uint32_t lkey) {
  struct ibv_sge room = {(uintptr_t)buffer + kHalf, bytes, lkey};
  struct ibv_recv_wr receive = {.wr_id = 0x88, .sg_list = &room, .num_sge = 1}, *bad = NULL;
  MUST(ibv_post_recv(b.qp, &receive, &bad) == 0);
}

static enum ibv_wc_status status_of(struct end* end) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  struct ibv_wc completion;
  do {
    const int polled = ibv_poll_cq(end->cq, 1, &completion);
    MUST(polled >= 0);
    if (polled == 1) return completion.status;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < kPatience);
  MUST(!"a completion");
  return IBV_WC_SUCCESS;
}

static void post(struct end* end) {
  struct ibv_send_wr* bad = NULL;
  MUST(ibv_post_send(end->qp, &request, &bad) == 0);
}

/* The request is filled for the opcode, with the right values. */
static void prepare(enum ibv_wr_opcode opcode, uint32_t bytes) {
  segment = (struct ibv_sge){(uintptr_t)buffer, bytes, region->lkey};
  request = (struct ibv_send_wr){
      .wr_id = 0x77, .sg_list = &segment, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = (uintptr_t)buffer + kHalf;
    request.wr.atomic.rkey = region->rkey;
  } else {
    request.wr.rdma.remote_addr = (uintptr_t)buffer + kHalf;
    request.wr.rdma.rkey = region->rkey;
  }
}

static void prepare_datagram(struct ibv_pd* of, uint32_t bytes) {
  struct ibv_ah_attr to = address();
  prepare(IBV_WR_SEND, bytes);
  MUST((request.wr.ud.ah = ibv_create_ah(of, &to)) != NULL);
  request.wr.ud.remote_qpn = b.qp->qp_num;
  request.wr.ud.remote_qkey = kQkey;
}

/* A window of the second half of the buffer. */
static struct ibv_mw* bind_window(struct end* end, struct ibv_mr* to) {
  struct ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  MUST(window != NULL);
  struct ibv_send_wr bind = {.wr_id = 0x77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad = NULL;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info = (struct ibv_mw_bind_info){to, (uintptr_t)buffer + kHalf, kHalf, IBV_ACCESS_REMOTE_WRITE};
  MUST(ibv_post_send(end->qp, &bind, &bad) == 0);
  if (IS("bind")) return window;
  MUST(status_of(end) == IBV_WC_SUCCESS);
  window->rkey = bind.bind_mw.rkey;
  return window;
}

static struct ibv_mr* region_with(struct ibv_pd* of, size_t bytes, int rights) {
  struct ibv_mr* made = ibv_reg_mr(of, buffer + kHalf, bytes, rights);
  MUST(made != NULL);
  return made;
}

/* Two queue pairs, of which the first one posts the request. */
static void rc(void) {
  make_pair(IBV_QPT_RC);
}
static void ud(void) {
  make_pair(IBV_QPT_UD);
}

static void long_datagram(void) {
  prepare_datagram(pd, 8000);
}
static void small_receive(void) {
  receive(16, region->lkey);
  prepare(IBV_WR_SEND, 64);
}
static void ud_write(void) {
  prepare(IBV_WR_RDMA_WRITE, 64);
}
/* Both requests are posted at once, and the second one is flushed. */
static void long_then_write(void) {
  static struct ibv_send_wr write;
  ud_write();
  write = request;
  prepare_datagram(pd, 8000);
  request.next = &write;
}
static void foreign_address(void) {
  prepare_datagram(other_pd, 64);
}
static void invalidate(void) {
  prepare(IBV_WR_LOCAL_INV, 0);
  request.num_sge = 0;
  request.invalidate_rkey = 0x12345678;
}
static void read_64(void) {
  prepare(IBV_WR_RDMA_READ, 64);
}
static void read_2048(void) {
  prepare(IBV_WR_RDMA_READ, 2048);
}
static void lkey(void) {
  prepare(IBV_WR_SEND, 64);
  segment.lkey += 0x100;
}
static void lkey_domain(void) {
  prepare(IBV_WR_SEND, 64);
  segment.lkey = region_with(other_pd, 64, IBV_ACCESS_LOCAL_WRITE)->lkey;
  segment.addr += kHalf;
}
static void lkey_right(void) {
  prepare(IBV_WR_RDMA_READ, 64);
  segment.lkey = region_with(pd, 64, 0)->lkey;
  segment.addr += kHalf;
}
static void lkey_bounds(void) {
  prepare(IBV_WR_SEND, 64);
  segment.lkey = region_with(pd, 32, 0)->lkey;
  segment.addr += kHalf;
}
static void lkey_of_window(void) {
  const struct ibv_mw* window = bind_window(&a, region);
  prepare(IBV_WR_RDMA_WRITE, 64);
  segment.lkey = window->rkey;
  segment.addr += kHalf;
}
static void receive_lkey(void) {
  receive(64, region->lkey + 0x100);
  prepare(IBV_WR_SEND, 64);
}
static void bind(void) {
  bind_window(&a, region_with(pd, kHalf, IBV_ACCESS_LOCAL_WRITE));
  request.opcode = IBV_WR_BIND_MW; /* it is posted */
}
static void immediate_rkey(void) {
  receive(64, region->lkey);
  prepare(IBV_WR_RDMA_WRITE_WITH_IMM, 64);
  request.wr.rdma.rkey += 0x100;
}
static void invalidation(void) {
  receive(64, region->lkey);
  prepare(IBV_WR_SEND_WITH_INV, 64);
  request.invalidate_rkey = 0x12345678;
}
static void unaligned(void) {
  prepare(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
  request.wr.atomic.remote_addr += 4;
}
static void write_2048(void) {
  prepare(IBV_WR_RDMA_WRITE, 2048);
}
static void write_64(void) {
  prepare(IBV_WR_RDMA_WRITE, 64);
}
static void rkey(void) {
  write_64();
  request.wr.rdma.rkey += 0x100;
}
static void rkey_domain(void) {
  write_64();
  request.wr.rdma.rkey = region_with(other_pd, 64, ALL_RIGHTS)->rkey;
}
static void rkey_right(void) {
  write_64();
  request.wr.rdma.rkey = region_with(pd, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)->rkey;
}
static void rkey_bounds(void) {
  write_64();
  request.wr.rdma.rkey = region_with(pd, 32, ALL_RIGHTS)->rkey;
}
static void rkey_atomic(void) {
  prepare(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
  request.wr.atomic.rkey = region_with(pd, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)->rkey;
}
static void rkey_ended(void) {
  struct ibv_mr* ended = region_with(pd, 64, ALL_RIGHTS);
  write_64();
  request.wr.rdma.rkey = ended->rkey;
  MUST(ibv_dereg_mr(ended) == 0);
}
/* The window's queue pair is a third one. */
static void window_elsewhere(void) {
  make(&c, IBV_QPT_RC);
  connect_to(&c, c.qp->qp_num);
  const struct ibv_mw* window = bind_window(&c, region);
  write_64();
  request.wr.rdma.rkey = window->rkey;
}
static void send_64(void) {
  prepare(IBV_WR_SEND, 64);
}
static void send_to_receive(void) {
  receive(64, region->lkey);
  send_64();
}
#ifdef DAPPLE_HAS_WR_FLUSH
static void with_flush(void) {
  struct end* ends[] = {&a, &b};
  for (int i = 0; i < 2; i++) {
    MUST((ends[i]->cq = ibv_create_cq(device, 4 * kDepth, NULL, NULL, 0)) != NULL);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ends[i]->cq,
        .recv_cq = ends[i]->cq,
        .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_FLUSH,
    };
    MUST((ends[i]->qp = ibv_create_qp_ex(device, &attr)) != NULL);
  }
  connect_to(&a, b.qp->qp_num);
  connect_to(&b, a.qp->qp_num);
}
static void flush_right(void) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp);
  ibv_wr_start(qp);
  qp->wr_id = 0x77;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_flush(qp, region->rkey, (uintptr_t)buffer + kHalf, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  MUST(ibv_wr_complete(qp) == 0);
  request.opcode = IBV_WR_BIND_MW; /* it is posted */
}
#endif

/* `receive_fails`: a receive of the peer fails, too. */
static const struct {
  const char* name;
  void (*make)(void);
  void (*fill)(void);
  int receive_fails;
} kCases[] = {
    {"long-datagram", ud, long_datagram, 0},
    {"small-receive", rc, small_receive, 1},
    {"long-then-write", ud, long_then_write, 0},
    {"ud-write", ud, ud_write, 0},
    {"foreign-address", ud, foreign_address, 0},
    {"invalidate", rc, invalidate, 0},
    {"no-reads", rc, read_64, 0},
    {"lkey", rc, lkey, 0},
    {"lkey-domain", rc, lkey_domain, 0},
    {"lkey-right", rc, lkey_right, 0},
    {"lkey-bounds", rc, lkey_bounds, 0},
    {"lkey-of-window", rc, lkey_of_window, 0},
    {"receive-lkey", rc, receive_lkey, 1},
    {"bind", rc, bind, 0},
    {"answers-mtu", rc, read_2048, 0},
    {"immediate-rkey", rc, immediate_rkey, 1},
    {"invalidation", rc, invalidation, 1},
    {"unaligned", rc, unaligned, 0},
    {"peers-rights", rc, write_64, 0},
    {"no-answers", rc, read_64, 0},
    {"peers-mtu", rc, write_2048, 0},
    {"rkey", rc, rkey, 0},
    {"responder-ends", rc, rkey, 0},
    {"rkey-domain", rc, rkey_domain, 0},
    {"rkey-right", rc, rkey_right, 0},
    {"rkey-bounds", rc, rkey_bounds, 0},
    {"rkey-atomic", rc, rkey_atomic, 0},
    {"rkey-ended", rc, rkey_ended, 0},
    {"window-elsewhere", rc, window_elsewhere, 0},
#ifdef DAPPLE_HAS_WR_FLUSH
    {"flush-right", with_flush, flush_right, 0},
#endif
    {"psn", rc, send_to_receive, 0},
    {"no-receive", rc, send_64, 0},
};

/* Waits for the queue pair's error, without a look at its completion. */
static void await_error(struct end* end) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
  struct ibv_qp_init_attr init;
  while (attr.qp_state != IBV_QPS_ERR) MUST(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) == 0);
}

int main(int count, char** words) {
  MUST(count == 2);
  mistake = words[1];
  const size_t cases = sizeof kCases / sizeof kCases[0];
  for (size_t i = 0; i < cases; i++) {
    if (IS("list")) puts(kCases[i].name);
    if (!IS(kCases[i].name)) continue;
    open_device();
    kCases[i].make();
    kCases[i].fill();
    if (request.opcode != IBV_WR_BIND_MW) post(&a);
    if (IS("responder-ends")) {
      await_error(&a);
      MUST(ibv_destroy_qp(b.qp) == 0);
    }
    /* A status by its number, as in enum ibv_wc_status. */
    printf("status %d\n", status_of(&a));
    if (kCases[i].receive_fails) printf("status %d\n", status_of(&b));
    puts("as expected");
    return 0;
  }
  return IS("list") ? 0 : 1;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * explain-calls KIND CASE: makes one call that fails, or one request that fails, and exits with 0 if it has failed as
 * expected. "right right" and "right extended" make no mistake. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/native/explain/device.h"
#include "tests/native/explain/mistake.h"

#define ALL_RIGHTS \
  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
enum { kBytes = 8192, kDepth = 16, kPsn = 0x123 };

struct end {
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};

static struct ibv_pd* pd;
static char* buffer;
static struct ibv_mr* region;
static struct end a, b;
static enum ibv_qp_type type = IBV_QPT_RC;

static void open_device(void) {
  open_dapple();
  MUST((pd = ibv_alloc_pd(device)) != NULL);
  MUST((buffer = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
  MUST((region = ibv_reg_mr(pd, buffer, kBytes, ALL_RIGHTS)) != NULL);
}

/* The second end has what the first one lacks: time stamps, and a thread domain, whose queue pairs take no locks. */
static void make_extended_end(struct end* made) {
  const int is_second = made == &b;
  struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4 * kDepth,
                                        .wc_flags = is_second ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : 0};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(device, &cq_attr);
  MUST(cq != NULL);
  made->cq = ibv_cq_ex_to_cq(cq);
  struct ibv_td_init_attr td_attr = {0};
  struct ibv_parent_domain_init_attr parent = {.pd = pd};
  if (is_second) MUST((parent.td = ibv_alloc_td(device, &td_attr)) != NULL);
  struct ibv_qp_init_attr_ex attr = {
      .send_cq = made->cq,
      .recv_cq = made->cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = type,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = is_second ? ibv_alloc_parent_domain(device, &parent) : pd,
      .send_ops_flags = IBV_QP_EX_WITH_SEND,
  };
  MUST(attr.pd != NULL && (made->qp = ibv_create_qp_ex(device, &attr)) != NULL);
}

static void make_end(struct end* made) {
  if (IS("extended")) {
    make_extended_end(made);
    return;
  }
  MUST((made->cq = ibv_create_cq(device, 4 * kDepth, NULL, NULL, 0)) != NULL);
  struct ibv_qp_init_attr attr = {
      .send_cq = made->cq,
      .recv_cq = made->cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = type,
  };
  MUST((made->qp = ibv_create_qp(pd, &attr)) != NULL);
}

static int to_init(struct end* of) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = IS("port") ? 2 : 1, .qkey = 0x1111, .qp_access_flags = ALL_RIGHTS};
  if (IS("peers-rights") && of == &b) attr.qp_access_flags &= ~IBV_ACCESS_REMOTE_WRITE;
  return ibv_modify_qp(
      of->qp, &attr,
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr address(void) {
  struct ibv_ah_attr attr = {
      .is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}};
  if (IS("gid")) attr.grh.sgid_index = 60;
  if (IS("gid-beyond")) attr.grh.sgid_index = 200;
  if (IS("grh")) attr.is_global = 0;
  if (IS("address-port")) attr.port_num = 3;
  if (IS("family")) MUST(ibv_query_gid(device, 1, 0, &attr.grh.dgid) == 0);
  return attr;
}

static int to_rtr(struct end* of, uint32_t peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IS("mtu-bytes")               ? 1024
                  : IS("mtu")                   ? IBV_MTU_4096
                  : IS("peers-mtu") && of == &b ? IBV_MTU_512
                                                : IBV_MTU_1024,
      .dest_qp_num = peer,
      .rq_psn = IS("psn") && of == &b ? kPsn + 5 : kPsn,
      .max_dest_rd_atomic = IS("depth") ? 250 : 4,
      .min_rnr_timer = IS("timer") ? 32 : 1,
      .ah_attr = address(),
  };
  /* Another address of the network. */
  if (IS("stranger") && of == &b) attr.ah_attr.grh.dgid.raw[15] = 9;
  if (IS("other-address") && of == &a) attr.ah_attr.grh.dgid.raw[15] = 5;
  int mask = IBV_QP_STATE;
  if (type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (IS("missing")) mask &= ~(IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER);
  if (IS("forbidden")) mask |= IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
  if (IS("unknown-bit")) mask |= 1 << 29;
  if (IS("current")) mask |= IBV_QP_CUR_STATE;
  attr.cur_qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(of->qp, &attr, mask);
}

static int to_rts(struct end* of) {
  /* The others have an answer, and wait for it without a limit: a busy machine may stop the peer for longer than any
   * timeout. */
  const bool wants_timeout = IS("psn") || IS("peers-number") || IS("peers-state") || IS("peers-peer");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                             .timeout = wants_timeout ? 8 : 0, /* 0: for ever */
                             .retry_cnt = IS("retries") ? 9 : 1,
                             .rnr_retry = IS("full") ? 7 : 1, /* 7: for ever */
                             .sq_psn = kPsn,
                             .max_rd_atomic = 4};
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(of->qp, &attr, mask);
}

static void connect_ends(void) {
  make_end(&a);
  make_end(&b);
  MUST(to_init(&a) == 0 && to_init(&b) == 0);
  MUST(to_rtr(&a, IS("peers-number") ? b.qp->qp_num + 77 : b.qp->qp_num) == 0);
  MUST(to_rts(&a) == 0);
  if (IS("peers-state") || IS("early")) return;
  MUST(to_rtr(&b, IS("peers-peer") ? a.qp->qp_num + 1 : a.qp->qp_num) == 0 && to_rts(&b) == 0);
}

static int send_bytes(enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t lkey, unsigned flags) {
  struct ibv_sge segments[2] = {{(uintptr_t)buffer, bytes, lkey}, {(uintptr_t)buffer, bytes, lkey}};
  struct ibv_send_wr request = {.wr_id = 0x77,
                                .sg_list = segments,
                                .num_sge = IS("segments")          ? 2
                                           : IS("segments-beyond") ? 1000
                                                                   : 1,
                                .opcode = opcode,
                                .send_flags = flags};
  request.wr.rdma.remote_addr = (uintptr_t)buffer;
  request.wr.rdma.rkey = IS("rkey") ? region->rkey + 0x100 : region->rkey;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = (uintptr_t)buffer + 4;
    request.wr.atomic.rkey = region->rkey;
  }
  if (type == IBV_QPT_UD) {
    struct ibv_ah_attr to = address();
    request.wr.ud.ah = ibv_create_ah(pd, &to);
    MUST(request.wr.ud.ah != NULL);
    request.wr.ud.remote_qpn = b.qp->qp_num;
    /* A number that neither end has. */
    while (IS("number") && (request.wr.ud.remote_qpn == a.qp->qp_num || request.wr.ud.remote_qpn == b.qp->qp_num))
      request.wr.ud.remote_qpn ^= request.wr.ud.remote_qpn == b.qp->qp_num ? 1 : 2;
    /* A number of another program, which does not run. */
    if (IS("nobody")) request.wr.ud.remote_qpn ^= 1 << 22;
    request.wr.ud.remote_qkey = IS("qkey") ? 0x2222 : 0x1111;
  }
  struct ibv_send_wr* bad = NULL;
  return ibv_post_send(a.qp, &request, &bad);
}

static int receive_bytes(struct end* of, uint32_t bytes) {
  struct ibv_sge segment = {(uintptr_t)buffer, bytes, region->lkey};
  struct ibv_recv_wr request = {.wr_id = 0x88, .sg_list = &segment, .num_sge = 1}, *bad = NULL;
  return ibv_post_recv(of->qp, &request, &bad);
}

/* The status of the next completion; -1 if there is none for a while. */
static int poll_status(struct end* of, int milliseconds) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  struct ibv_wc completion;
  int polls = 0;
  /* A busy machine may stop the program for longer than that after its first poll. */
  do {
    polls++;
    const int polled = ibv_poll_cq(of->cq, 1, &completion);
    MUST(polled >= 0);
    if (polled == 1) return completion.status;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds || polls < 1000);
  return -1;
}

static void give_up_net_raw(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
  MUST(syscall(SYS_capget, &header, data) == 0);
  data[0].effective &= ~(1U << CAP_NET_RAW);
  MUST(syscall(SYS_capset, &header, data) == 0);
}

/* ibv_modify_qp() */
static void modify(void) {
  make_end(&a);
  if (IS("privileged")) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000};
    give_up_net_raw();
    MUST(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == EPERM);
    return;
  }
  if (IS("skipped")) {
    MUST(to_rtr(&a, a.qp->qp_num) == EINVAL);
    return;
  }
  if (IS("port")) {
    MUST(to_init(&a) == EINVAL);
    return;
  }
  MUST(to_init(&a) == 0);
  const int error = to_rtr(&a, a.qp->qp_num);
  if (IS("retries")) {
    MUST(error == 0 && to_rts(&a) == EINVAL);
  } else {
    MUST(error == (IS("gid") ? ENODATA : EINVAL));
  }
}

/* Verbs that make or destroy an object. */
static void objects(void) {
  struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
  if (IS("cq-depth")) {
    MUST(ibv_create_cq(device, 0, NULL, NULL, 0) == NULL && errno == EINVAL);
  } else if (IS("cq-vector")) {
    MUST(ibv_create_cq(device, 1, NULL, NULL, 99999) == NULL && errno == EINVAL);
  } else if (IS("cq-channel")) {
    /* Of another open file of the device. */
    struct ibv_context* other = ibv_open_device(device->device);
    struct ibv_comp_channel* channel = other == NULL ? NULL : ibv_create_comp_channel(other);
    MUST(channel != NULL && ibv_create_cq(device, 1, NULL, channel, 0) == NULL && errno == EBADF);
  } else if (IS("qp-without-cq")) {
    MUST(ibv_create_qp(pd, &attr) == NULL && errno == EINVAL);
  } else if (IS("qp-depth")) {
    MUST((a.cq = ibv_create_cq(device, 1, NULL, NULL, 0)) != NULL);
    attr.send_cq = attr.recv_cq = a.cq;
    attr.cap.max_send_wr = 1 << 30;
    MUST(ibv_create_qp(pd, &attr) == NULL && errno == EINVAL);
  } else if (IS("qp-type")) {
    attr.qp_type = IBV_QPT_DRIVER;
    MUST(ibv_create_qp(pd, &attr) == NULL && errno == EOPNOTSUPP);
  } else if (IS("srq-depth")) {
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 0, .max_sge = 1}};
    MUST(ibv_create_srq(pd, &srq) == NULL && errno == EINVAL);
  } else if (IS("access")) {
    MUST(ibv_reg_mr(pd, buffer, kBytes, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
  } else if (IS("iova")) {
    MUST(ibv_reg_mr_iova(pd, buffer + 64, kBytes - 64, 0, 0) == NULL && errno == EINVAL);
  } else if (IS("no-bytes")) {
    MUST(ibv_reg_mr(pd, buffer, 0, 0) == NULL && errno == EINVAL);
  } else if (IS("unmapped")) {
    munmap(buffer + 4096, 4096);
    MUST(ibv_reg_mr(pd, buffer, kBytes, 0) == NULL && errno == EFAULT);
  } else if (IS("read-only")) {
    mprotect(buffer + 4096, 4096, PROT_READ);
    MUST(ibv_reg_mr(pd, buffer, kBytes, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
  } else if (IS("moved-nowhere")) {
    const int moves = IBV_REREG_MR_CHANGE_TRANSLATION;
    MUST(ibv_rereg_mr(region, moves, NULL, NULL, kBytes, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
  } else if (IS("moved-empty")) {
    const int moves = IBV_REREG_MR_CHANGE_TRANSLATION;
    MUST(ibv_rereg_mr(region, moves, NULL, buffer, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
  } else if (IS("unknown-change")) {
    MUST(ibv_rereg_mr(region, 64, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
  } else if (IS("rights-without-flag")) {
    const int changes = IBV_REREG_MR_CHANGE_PD;
    MUST(ibv_rereg_mr(region, changes, pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_INPUT &&
         errno == EINVAL);
  } else if (IS("null-region")) {
    struct ibv_mr* null_region = ibv_alloc_null_mr(pd);
    MUST(null_region != NULL);
    MUST(ibv_rereg_mr(null_region, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  } else if (IS("moved-unmapped")) {
    munmap(buffer + 4096, 4096);
    MUST(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer, kBytes, 0) == IBV_REREG_MR_ERR_CMD);
  } else if (IS("moved")) {
    MUST(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer, 4096, 0) == 0);
  } else if (IS("gid")) {
    struct ibv_ah_attr to = address();
    MUST(ibv_create_ah(pd, &to) == NULL && errno == ENODATA);
  } else if (IS("window-type")) {
    MUST(ibv_alloc_mw(pd, (enum ibv_mw_type)7) == NULL && errno == EINVAL);
  } else if (IS("busy-domain")) {
    make_end(&a);
    MUST(ibv_dealloc_pd(pd) == EBUSY);
  } else if (IS("busy-queue")) {
    make_end(&a);
    MUST(ibv_destroy_cq(a.cq) == EBUSY);
  } else if (IS("busy-below")) {
    struct ibv_parent_domain_init_attr parent = {.pd = pd};
    MUST(ibv_dereg_mr(region) == 0 && ibv_alloc_parent_domain(device, &parent) != NULL);
    MUST(ibv_dealloc_pd(pd) == EBUSY);
  } else if (IS("no-dmabuf")) {
    MUST(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 1, 0) == NULL && errno == EINVAL);
  } else if (IS("advice")) {
    struct ibv_sge all = {(uintptr_t)buffer, kBytes, region->lkey};
    MUST(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &all, 1) == EINVAL);
  } else if (IS("device-memory") || IS("device-memory-copy")) {
    struct ibv_alloc_dm_attr attr_of_dm = {.length = 64};
    struct ibv_dm* dm = ibv_alloc_dm(device, &attr_of_dm);
    MUST(dm != NULL);
    if (IS("device-memory")) {
      MUST(ibv_reg_dm_mr(pd, dm, 32, 64, IBV_ACCESS_ZERO_BASED) == NULL && errno == EINVAL);
    } else {
      MUST(ibv_memcpy_to_dm(dm, 2, buffer, 8) == EFAULT);
    }
  } else if (IS("query-port")) {
    struct ibv_port_attr port;
    MUST(ibv_query_port(device, 2, &port) != 0);
  } else {
    MUST(!"a case");
  }
}

static void posts(void) {
  if (IS("state")) {
    make_end(&a);
    MUST(to_init(&a) == 0 && send_bytes(IBV_WR_SEND, 8, region->lkey, 0) == EINVAL);
    return;
  }
  if (IS("reset")) {
    make_end(&a);
    MUST(receive_bytes(&a, 8) == EINVAL);
    return;
  }
  connect_ends();
  if (IS("full")) {
    int error = 0;
    /* The peer has no receive, so nothing completes. */
    for (int i = 0; i < 1000 && error == 0; i++) error = send_bytes(IBV_WR_SEND, 8, region->lkey, 0);
    MUST(error == ENOMEM);
  } else if (IS("receives")) {
    int error = 0;
    for (int i = 0; i < 1000 && error == 0; i++) error = receive_bytes(&a, 8);
    MUST(error == ENOMEM);
  } else if (IS("inline")) {
    MUST(send_bytes(IBV_WR_SEND, 4096, region->lkey, IBV_SEND_INLINE) == EINVAL);
  } else if (IS("opcode")) {
    MUST(send_bytes((enum ibv_wr_opcode)99, 8, region->lkey, 0) == EINVAL);
  } else {
    MUST(send_bytes(IBV_WR_SEND, 8, region->lkey, 0) == EINVAL);
  }
}

static void completions(void) {
  connect_ends();
  if (IS("rkey")) {
    MUST(send_bytes(IBV_WR_RDMA_WRITE, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_REM_ACCESS_ERR);
  } else if (IS("lkey")) {
    MUST(send_bytes(IBV_WR_RDMA_WRITE, 64, region->lkey + 0x100, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_LOC_PROT_ERR);
  } else if (IS("unaligned")) {
    MUST(send_bytes(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_REM_INV_REQ_ERR);
  } else if (IS("peers-rights")) {
    MUST(send_bytes(IBV_WR_RDMA_WRITE, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_REM_INV_REQ_ERR);
  } else if (IS("peers-mtu")) {
    MUST(send_bytes(IBV_WR_RDMA_WRITE, 2048, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_REM_INV_REQ_ERR);
  } else if (IS("no-receive")) {
    MUST(send_bytes(IBV_WR_SEND, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_RNR_RETRY_EXC_ERR);
  } else if (IS("small-receive")) {
    MUST(receive_bytes(&b, 16) == 0 && send_bytes(IBV_WR_SEND, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_REM_INV_REQ_ERR && poll_status(&b, 5000) == IBV_WC_LOC_LEN_ERR);
  } else {
    MUST(receive_bytes(&b, 64) == 0 && send_bytes(IBV_WR_SEND, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
    MUST(poll_status(&a, 5000) == IBV_WC_RETRY_EXC_ERR);
  }
}

/* Messages that the peer drops. */
static void drops(void) {
  connect_ends();
  if (IS("qkey")) MUST(receive_bytes(&b, 104) == 0);
  if (IS("room") || IS("stranger") || IS("other-address")) MUST(receive_bytes(&b, 64) == 0);
  const enum ibv_wr_opcode opcode =
      IS("rkey") || IS("peers-rights") || IS("peers-mtu") ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
  MUST(send_bytes(opcode, IS("peers-mtu") ? 2048 : 64, region->lkey, IBV_SEND_SIGNALED) == 0);
  MUST(poll_status(&a, 5000) == IBV_WC_SUCCESS && poll_status(&b, 200) == -1);
}

static void right(void) {
  connect_ends();
  MUST(receive_bytes(&b, 64) == 0 && send_bytes(IBV_WR_SEND, 64, region->lkey, IBV_SEND_SIGNALED) == 0);
  MUST(poll_status(&a, 5000) == IBV_WC_SUCCESS && poll_status(&b, 5000) == IBV_WC_SUCCESS);
  MUST(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
  MUST(ibv_destroy_cq(a.cq) == 0 && ibv_destroy_cq(b.cq) == 0 && ibv_dereg_mr(region) == 0);
  MUST(ibv_dealloc_pd(pd) == 0 && ibv_close_device(device) == 0);
}

static void send_extended(struct end* of) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(of->qp);
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, region->lkey, (uintptr_t)buffer, 64);
  MUST(ibv_wr_complete(qp) == 0);
}

static void poll_extended(struct end* of) {
  struct ibv_poll_cq_attr attr = {0};
  struct ibv_cq_ex* cq = (struct ibv_cq_ex*)of->cq;
  int error;
  while ((error = ibv_start_poll(cq, &attr)) == ENOENT) usleep(100);
  MUST(error == 0 && cq->status == IBV_WC_SUCCESS);
  if (of == &b) MUST(ibv_wc_read_completion_ts(cq) != 0);
  ibv_end_poll(cq);
}

/* Ends of different kinds in one process. */
static void right_extended(void) {
  connect_ends();
  MUST(receive_bytes(&a, 64) == 0 && receive_bytes(&b, 64) == 0);
  send_extended(&a);
  send_extended(&b);
  for (int i = 0; i < 2; i++) {
    poll_extended(&a);
    poll_extended(&b);
  }
}

int main(int count, char** words) {
  MUST(count == 3);
  mistake = words[2];
  if (strcmp(words[1], "ud") == 0) type = IBV_QPT_UD;
  if (strcmp(words[1], "uc") == 0) type = IBV_QPT_UC;
  open_device();
  if (strcmp(words[1], "modify") == 0) modify();
  if (strcmp(words[1], "objects") == 0) objects();
  if (strcmp(words[1], "posts") == 0) posts();
  if (strcmp(words[1], "completions") == 0) completions();
  if (type != IBV_QPT_RC) drops();
  if (strcmp(words[1], "right") == 0) IS("extended") ? right_extended() : right();
  puts("as expected");
  return 0;
}

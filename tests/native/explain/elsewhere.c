/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * elsewhere CASE front|back: two programs on two hosts. Standard output of each is standard input of the other one. The
 * front's request fails because of the mistake that CASE names, and its completion's status goes to standard error.
 *
 *   none     no mistake
 *   ahead    the front begins with a larger PSN than the back expects
 *   behind   with a smaller one
 *   deaf     the back's queue pair is not in IBV_QPS_RTR
 *   number   the front takes another number for the back's
 *   address  the front takes another address of the back's
 *   loopback the front takes the device of lo
 *   mtu      the back has a smaller path_mtu
 *   key      the front uses another key than the back's
 *   gone     the back's queue pair is destroyed after the first request
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "tests/native/explain/mistake.h"

enum {
  kSize = 8192,
  kPsn = 0x1000,
  kTimeout = 14, /* a back that answers may be slow */
  kRetries = 7,
  kShortTimeout = 8,
  kFewRetries = 2,
  kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

struct end {
  uint32_t qpn, key;
  uint64_t address;
  union ibv_gid gids[2]; /* the IPv4 and the IPv6 address */
};

static struct ibv_context* context;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* mr;
static char bytes[kSize];

static void tell(const void* data, size_t size) {
  MUST(write(1, data, size) == (ssize_t)size);
}

static void hear(void* data, size_t size) {
  MUST(read(0, data, size) == (ssize_t)size);
}

/* Both programs wait for each other here. */
static void meet(void) {
  char one = 1;
  tell(&one, 1);
  hear(&one, 1);
}

static int index_of(const char* prefix) {
  char text[INET6_ADDRSTRLEN];
  union ibv_gid gid;
  for (int i = 0; ibv_query_gid(context, 1, i, &gid) == 0; i++) {
    inet_ntop(AF_INET6, gid.raw, text, sizeof text);
    if (strncmp(text, prefix, strlen(prefix)) == 0) return i;
  }
  MUST(!"a GID");
  return 0;
}

static struct end make_end(bool has_loopback) {
  const char* ipv4 = has_loopback ? "::ffff:127." : "::ffff:10.77.";
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count && context == NULL; i++) {
    union ibv_gid gid;
    context = ibv_open_device(list[i]);
    MUST(context != NULL);
    if (ibv_query_gid(context, 1, 1, &gid) == 0 &&
        (has_loopback ? gid.raw[12] == 127 : gid.raw[12] == 10 || gid.raw[0] == 0xfd))
      break;
    ibv_close_device(context);
    context = NULL;
  }
  MUST(context != NULL);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  mr = ibv_reg_mr(pd, bytes, sizeof bytes, kRights);
  MUST(cq != NULL && mr != NULL);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  init.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
  qp = ibv_create_qp(pd, &init);
  MUST(qp != NULL);
  struct end end = {.qpn = qp->qp_num, .key = mr->rkey, .address = (uintptr_t)bytes};
  MUST(ibv_query_gid(context, 1, index_of(ipv4), &end.gids[0]) == 0);
  MUST(has_loopback || ibv_query_gid(context, 1, index_of("fd77:"), &end.gids[1]) == 0);
  return end;
}

static void connect_to(const struct end* peer, bool is_front) {
  const bool takes_other = is_front && IS("address");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  if (!is_front && (IS("deaf") || IS("hops"))) return;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = !is_front && IS("mtu") ? IBV_MTU_512 : IBV_MTU_1024;
  attr.dest_qp_num = peer->qpn + (is_front && IS("number") ? 1 : 0);
  attr.rq_psn = kPsn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
  attr.ah_attr.grh.dgid = peer->gids[takes_other ? 1 : 0];
  const char* own = is_front && IS("loopback") ? "::ffff:127." : "::ffff:10.77.";
  attr.ah_attr.grh.sgid_index = (uint8_t)index_of(takes_other ? "fd77:" : own);
  attr.ah_attr.grh.hop_limit = IS("hops") ? 1 : 64;
  MUST(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kPsn;
  if (is_front && IS("ahead")) attr.sq_psn += 5;
  if (is_front && IS("behind")) attr.sq_psn -= 5;
  const bool is_answered = !IS("deaf") && !IS("hops") && !IS("number") && !IS("address") && !IS("loopback");
  attr.timeout = is_answered ? kTimeout : kShortTimeout;
  attr.retry_cnt = is_answered ? kRetries : kFewRetries;
  attr.max_rd_atomic = 1;
  MUST(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void use(const struct end* peer) {
  struct ibv_sge segment = {(uintptr_t)bytes, sizeof bytes, mr->lkey};
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad = NULL;
  /* The back answers an old Write, and no old Read. */
  if (IS("behind")) {
    request.opcode = IBV_WR_RDMA_WRITE;
    segment.length = 64;
  }
  request.wr.rdma.remote_addr = peer->address;
  request.wr.rdma.rkey = peer->key + (IS("key") ? 0x100 : 0);
  struct ibv_wc completion;
  MUST(ibv_post_send(qp, &request, &bad) == 0);
  while (ibv_poll_cq(cq, 1, &completion) == 0) {
  }
  fprintf(stderr, "%s\n", ibv_wc_status_str(completion.status));
}

int main(int count, char** words) {
  MUST(count == 3);
  mistake = words[1];
  const bool is_front = strcmp(words[2], "front") == 0;
  const struct end own = make_end(is_front && IS("loopback"));
  struct end peer;
  tell(&own, sizeof own);
  hear(&peer, sizeof peer);
  connect_to(&peer, is_front);
  meet();
  /* The front hears something of a back that it does not take for its peer. */
  if (!is_front && IS("address")) use(&peer);
  meet();
  if (is_front) use(&peer);
  if (IS("gone")) {
    meet();
    if (!is_front) MUST(ibv_destroy_qp(qp) == 0);
    meet();
    if (is_front) use(&peer);
  }
  meet();
  return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * planted-bugs [BUG... [mended]]: mistakes that a NIC answers with a number, or not at all. dapple-run --check explains
 * them:
 *
 *   deregistered   a Write that names the key of memory which is deregistered
 *   released       a Send from memory which is deregistered
 *   foreign        a Send from memory of another protection domain
 *   unknown        a Send by a key that belongs to no memory
 *   beyond         a Write that ends behind the registered memory
 *   readonly       a receive into memory without IBV_ACCESS_LOCAL_WRITE
 *   closed         a Write to a queue pair without IBV_ACCESS_REMOTE_WRITE
 *   bound          a memory window that is longer than its region
 *   invalid        an invalidation of a key that no memory window has
 *   datagrams      a Write by a queue pair of datagrams
 *   small          a receive that is shorter than the message
 *   overrun        a completion queue that is shorter than the requests
 *   changed        buffers that change between the post and the transmission
 *   unmapped       a Write to memory that is unmapped and still registered
 *   gone           a Send from memory that is unmapped and still registered
 *   freed          a Write to memory that is freed and still registered
 *   remapped       a Send from memory that is unmapped and mapped again, by the old registration
 *   outstanding    a queue pair that ends before its Send does
 * These are not mistakes, but get a note:
 *   left           a protection domain that is left at exit
 *   crowded        a completion queue that is shorter than the queues that use it
 *   overlapping    Writes of two queue pairs to the same bytes, with no completion between them
 *   more           a request more in a queue than the program has asked room for
 *
 * With "mended" the program does the same without the mistakes. Without arguments it makes all mistakes. Two of its
 * queue pairs are connected to each other.
 */
#define _DEFAULT_SOURCE
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  kSize = 4096,
  kDepth = 16,
  kCompletions = 2 * kDepth,
  kGidIndex = 1, /* the first address; the link-local GID before it may have no route */
  kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

static struct ibv_context* device;
static union ibv_gid gid;
static bool mended;

/* dapple-run --check takes these words, and then those of DAPPLE_CHECK. */
__attribute__((visibility("default"))) const char* __dapple_default_options(void);
const char* __dapple_default_options(void) {
  return "exitcode=67";
}

/* The objects of one mistake. */
struct stage {
  struct ibv_pd* pd;
  struct ibv_cq *front_cq, *back_cq;
  struct ibv_qp *front, *back;
};

struct buffer {
  char* bytes;
  struct ibv_mr* mr;
};

static void check(bool good, const char* call) {
  if (good) return;
  fprintf(stderr, "planted-bugs: %s failed\n", call);
  exit(3);
}

static struct ibv_qp* make_queue_pair(struct ibv_pd* pd, struct ibv_cq* cq) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
  };
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  return qp;
}

static void connect_to(struct ibv_qp* qp, const struct ibv_qp* peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 28, /* 164 ms: only a few of these answers, also if this program is slow */
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = kGidIndex, .hop_limit = 1}},
  };
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "RTS");
}

static struct stage set_up(int completions) {
  struct stage stage;
  stage.pd = ibv_alloc_pd(device);
  check(stage.pd != NULL, "ibv_alloc_pd");
  stage.front_cq = ibv_create_cq(device, completions, NULL, NULL, 0);
  stage.back_cq = ibv_create_cq(device, kCompletions, NULL, NULL, 0);
  check(stage.front_cq != NULL && stage.back_cq != NULL, "ibv_create_cq");
  stage.front = make_queue_pair(stage.pd, stage.front_cq);
  stage.back = make_queue_pair(stage.pd, stage.back_cq);
  connect_to(stage.front, stage.back);
  connect_to(stage.back, stage.front);
  return stage;
}

static void end_queue_pairs(const struct stage* stage) {
  check(ibv_destroy_qp(stage->front) == 0 && ibv_destroy_qp(stage->back) == 0, "ibv_destroy_qp");
}

static void take_down_rest(const struct stage* stage) {
  check(ibv_destroy_cq(stage->front_cq) == 0 && ibv_destroy_cq(stage->back_cq) == 0, "ibv_destroy_cq");
  check(ibv_dealloc_pd(stage->pd) == 0, "ibv_dealloc_pd");
}

static void take_down(const struct stage* stage) {
  end_queue_pairs(stage);
  take_down_rest(stage);
}

static void register_buffer(struct ibv_pd* pd, struct buffer* buffer, int rights) {
  buffer->mr = ibv_reg_mr(pd, buffer->bytes, kSize, rights);
  check(buffer->mr != NULL, "ibv_reg_mr");
}

static struct buffer make_buffer(struct ibv_pd* pd) {
  struct buffer made = {mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), NULL};
  check(made.bytes != MAP_FAILED, "mmap");
  memset(made.bytes, 1, kSize);
  register_buffer(pd, &made, kRights);
  return made;
}

static void deregister(struct buffer* buffer) {
  check(ibv_dereg_mr(buffer->mr) == 0, "ibv_dereg_mr");
  buffer->mr = NULL;
}

/*
 * A function of its own, so that stacks show it. The argument is volatile, because compilers may remove a pair of
 * malloc() and free().
 */
static void drop_block(char* volatile block) {
  free(block);
}

static void map_again(char* bytes) {
  munmap(bytes, kSize);
  void* again = mmap(bytes, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  check(again == bytes, "mmap");
}

static void drop_buffer(struct buffer* buffer) {
  if (buffer->mr != NULL) deregister(buffer);
  munmap(buffer->bytes, kSize);
}

/* A request from a part of a buffer. */
static void post_quietly(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct ibv_sge* local, unsigned flags,
                         const char* remote, uint32_t rkey) {
  struct ibv_sge segment = *local;
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = opcode, .send_flags = flags};
  request.wr.rdma.remote_addr = (uintptr_t)remote;
  request.wr.rdma.rkey = rkey;
  struct ibv_send_wr* bad = NULL;
  check(ibv_post_send(qp, &request, &bad) == 0, "ibv_post_send");
}

/* With a completion. */
static void post(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct ibv_sge* local, unsigned flags,
                 const char* remote, uint32_t rkey) {
  post_quietly(qp, opcode, local, IBV_SEND_SIGNALED | flags, remote, rkey);
}

static void post_receive(struct ibv_qp* qp, const struct buffer* buffer, uint32_t size) {
  struct ibv_sge segment = {(uintptr_t)buffer->bytes, size, buffer->mr->lkey};
  struct ibv_recv_wr request = {.wr_id = 7, .sg_list = &segment, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  check(ibv_post_recv(qp, &request, &bad) == 0, "ibv_post_recv");
}

/* Polls both completion queues until the front one has returned so many completions. */
static enum ibv_wc_status finish(const struct stage* stage, int count) {
  struct ibv_wc completion;
  enum ibv_wc_status status = IBV_WC_SUCCESS;
  while (count > 0) {
    ibv_poll_cq(stage->back_cq, 1, &completion);
    if (ibv_poll_cq(stage->front_cq, 1, &completion) != 1) continue;
    if (status == IBV_WC_SUCCESS) status = completion.status;
    count--;
  }
  return status;
}

static void expect(enum ibv_wc_status status, enum ibv_wc_status of_mistake) {
  const enum ibv_wc_status right = mended ? IBV_WC_SUCCESS : of_mistake;
  if (status == right) return;
  fprintf(stderr, "planted-bugs: %s instead of %s\n", ibv_wc_status_str(status), ibv_wc_status_str(right));
  exit(3);
}

static struct ibv_sge part_of(const struct buffer* buffer, uint32_t size) {
  const struct ibv_sge segment = {(uintptr_t)buffer->bytes, size, buffer->mr->lkey};
  return segment;
}

static void write_to_deregistered_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const uint32_t rkey = far.mr->rkey;
  const struct ibv_sge segment = part_of(&near, 64);
  if (!mended) deregister(&far);
  post(stage.front, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes, rkey);
  expect(finish(&stage, 1), IBV_WC_REM_ACCESS_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void send_from_deregistered_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  post_receive(stage.back, &far, 64);
  if (!mended) deregister(&near);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_LOC_PROT_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void send_from_foreign_domain(void) {
  const struct stage stage = set_up(kCompletions);
  struct ibv_pd* other = ibv_alloc_pd(device);
  check(other != NULL, "ibv_alloc_pd");
  struct buffer near = make_buffer(mended ? stage.pd : other), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  post_receive(stage.back, &far, 64);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_LOC_PROT_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  check(ibv_dealloc_pd(other) == 0, "ibv_dealloc_pd");
  take_down(&stage);
}

static void send_by_an_unknown_key(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  struct ibv_sge segment = part_of(&near, 64);
  if (!mended) segment.lkey++;
  post_receive(stage.back, &far, 64);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_LOC_PROT_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void write_too_far(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  post(stage.front, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes + kSize - (mended ? 64 : 32), far.mr->rkey);
  expect(finish(&stage, 1), IBV_WC_REM_ACCESS_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void receive_in_readonly_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  if (!mended) {
    deregister(&far);
    register_buffer(stage.pd, &far, 0);
  }
  post_receive(stage.back, &far, 64);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_REM_OP_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void write_to_a_closed_queue_pair(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
  if (!mended) check(ibv_modify_qp(stage.back, &attr, IBV_QP_ACCESS_FLAGS) == 0, "access flags");
  post(stage.front, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes, far.mr->rkey);
  expect(finish(&stage, 1), IBV_WC_REM_INV_REQ_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

/* A buffer to whose region memory windows can be bound. */
static struct buffer make_window_buffer(const struct stage* stage) {
  struct buffer made = make_buffer(stage->pd);
  deregister(&made);
  register_buffer(stage->pd, &made, kRights | IBV_ACCESS_MW_BIND);
  return made;
}

static void bind_too_much(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_window_buffer(&stage);
  struct ibv_mw* window = ibv_alloc_mw(stage.pd, IBV_MW_TYPE_1);
  check(window != NULL, "ibv_alloc_mw");
  struct ibv_mw_bind bind = {
      .send_flags = IBV_SEND_SIGNALED,
      .bind_info = {near.mr, (uintptr_t)near.bytes, mended ? kSize : kSize + 1, IBV_ACCESS_REMOTE_READ},
  };
  check(ibv_bind_mw(stage.front, window, &bind) == 0, "ibv_bind_mw");
  expect(finish(&stage, 1), IBV_WC_MW_BIND_ERR);
  check(ibv_dealloc_mw(window) == 0, "ibv_dealloc_mw");
  drop_buffer(&near);
  take_down(&stage);
}

static void invalidate_another_key(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_window_buffer(&stage);
  struct ibv_mw* window = ibv_alloc_mw(stage.pd, IBV_MW_TYPE_2);
  check(window != NULL, "ibv_alloc_mw");
  const uint32_t rkey = ibv_inc_rkey(window->rkey);
  struct ibv_send_wr *bad = NULL, bind = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = rkey;
  bind.bind_mw.bind_info = (struct ibv_mw_bind_info){near.mr, (uintptr_t)near.bytes, kSize, IBV_ACCESS_REMOTE_READ};
  check(ibv_post_send(stage.front, &bind, &bad) == 0, "ibv_post_send");
  if (finish(&stage, 1) != IBV_WC_SUCCESS) check(false, "the bind");
  struct ibv_send_wr invalidate = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
  invalidate.invalidate_rkey = mended ? rkey : ibv_inc_rkey(rkey);
  check(ibv_post_send(stage.front, &invalidate, &bad) == 0, "ibv_post_send");
  expect(finish(&stage, 1), IBV_WC_LOC_QP_OP_ERR);
  check(ibv_dealloc_mw(window) == 0, "ibv_dealloc_mw");
  drop_buffer(&near);
  take_down(&stage);
}

static struct ibv_qp* make_queue_pair_of_datagrams(const struct stage* stage) {
  struct ibv_qp_init_attr init = {
      .send_cq = stage->front_cq,
      .recv_cq = stage->front_cq,
      .qp_type = IBV_QPT_UD,
      .cap = {.max_send_wr = 1, .max_send_sge = 1},
  };
  struct ibv_qp* qp = ibv_create_qp(stage->pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0, "INIT");
  attr.qp_state = IBV_QPS_RTR;
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTR");
  attr.qp_state = IBV_QPS_RTS;
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
  return qp;
}

static void write_by_datagrams(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  struct ibv_qp* datagrams = make_queue_pair_of_datagrams(&stage);
  const struct ibv_sge segment = part_of(&near, 64);
  post(mended ? stage.front : datagrams, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes, far.mr->rkey);
  expect(finish(&stage, 1), IBV_WC_LOC_QP_OP_ERR);
  check(ibv_destroy_qp(datagrams) == 0, "ibv_destroy_qp");
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void receive_too_little(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  post_receive(stage.back, &far, mended ? 64 : 32);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_REM_INV_REQ_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void fill_the_completion_queue(void) {
  const struct stage stage = set_up(mended ? 4 : 2);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  for (int i = 0; i < 4; i++) {
    post_receive(stage.back, &far, 64);
    post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  }
  struct ibv_wc completion;
  for (int received = 0; received < 4;) received += ibv_poll_cq(stage.back_cq, 1, &completion);
  /* The acknowledgement must arrive before the front queue is polled. */
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  check(ibv_modify_qp(stage.back, &attr, IBV_QP_STATE) == 0, "ERR");
  for (int i = 0; i < 1000; i++) ibv_poll_cq(stage.back_cq, 1, &completion);
  expect(finish(&stage, mended ? 4 : 2), IBV_WC_SUCCESS);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void change_too_early(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  for (char i = 0; i < 100; i++) {
    post_receive(stage.back, &(const struct buffer){far.bytes + i % 64 * 64, far.mr}, 64);
    post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
    if (!mended) near.bytes[10] = i;
    expect(finish(&stage, 1), IBV_WC_SUCCESS);
    near.bytes[10] = i;
  }
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void write_to_unmapped_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  if (!mended) munmap(far.bytes, kSize);
  post(stage.front, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes, far.mr->rkey);
  expect(finish(&stage, 1), IBV_WC_REM_ACCESS_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void send_from_unmapped_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  post_receive(stage.back, &far, 64);
  if (!mended) munmap(near.bytes, kSize);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_LOC_PROT_ERR);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void write_to_freed_memory(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  char* block = malloc(512);
  check(block != NULL, "malloc");
  struct buffer far = {block, ibv_reg_mr(stage.pd, block, 512, kRights)};
  check(far.mr != NULL, "ibv_reg_mr");
  if (!mended) drop_block(block);
  /* The allocator has its own words at the front. */
  post(stage.front, IBV_WR_RDMA_WRITE, &segment, 0, far.bytes + 64, far.mr->rkey);
  expect(finish(&stage, 1), IBV_WC_SUCCESS);
  deregister(&far);
  if (mended) drop_block(block); /* NOLINT(clang-analyzer-unix.Malloc): the flag stays */
  drop_buffer(&near);
  take_down(&stage);
}

static void send_from_new_pages(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  if (mended) deregister(&near);
  map_again(near.bytes);
  if (mended) near.mr = ibv_reg_mr(stage.pd, near.bytes, kSize, kRights);
  check(near.mr != NULL, "ibv_reg_mr");
  const struct ibv_sge segment = part_of(&near, 64);
  post_receive(stage.back, &far, 64);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(&stage, 1), IBV_WC_SUCCESS);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down(&stage);
}

static void end_too_early(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer near = make_buffer(stage.pd), far = make_buffer(stage.pd);
  const struct ibv_sge segment = part_of(&near, 64);
  if (mended) post_receive(stage.back, &far, 64);
  post(stage.front, IBV_WR_SEND, &segment, 0, NULL, 0);
  /* The other end answers that nobody has posted a receive. */
  struct ibv_wc completion;
  for (int i = 0; !mended && i < 1000; i++) ibv_poll_cq(stage.back_cq, 1, &completion);
  if (mended) expect(finish(&stage, 1), IBV_WC_SUCCESS);
  end_queue_pairs(&stage);
  drop_buffer(&near);
  drop_buffer(&far);
  take_down_rest(&stage);
}

static void leave_a_domain(void) {
  struct ibv_pd* pd = ibv_alloc_pd(device);
  check(pd != NULL, "ibv_alloc_pd");
  if (mended) check(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
}

static void make_a_small_completion_queue(void) {
  const struct stage stage = set_up(mended ? kCompletions : kCompletions - 1);
  take_down(&stage);
}

static void post_one_more(void) {
  const struct stage stage = set_up(kCompletions);
  struct buffer far = make_buffer(stage.pd);
  const int count = mended ? kDepth : kDepth + 1;
  for (int i = 0; i < count; i++) {
    const struct buffer part = {far.bytes + (size_t)i * 64, far.mr};
    post_receive(stage.back, &part, 64);
  }
  end_queue_pairs(&stage);
  drop_buffer(&far);
  take_down_rest(&stage);
}

/* Writes there, and waits for the bytes. */
static void write_quietly(const struct stage* stage, const struct buffer* near, struct buffer* far, char byte) {
  const struct ibv_sge segment = part_of(near, 64);
  memset(near->bytes, byte, 64);
  post_quietly(stage->front, IBV_WR_RDMA_WRITE, &segment, 0, far->bytes, far->mr->rkey);
  struct ibv_wc completion;
  while (*(volatile char*)&far->bytes[63] != byte) {
    ibv_poll_cq(stage->front_cq, 1, &completion);
    ibv_poll_cq(stage->back_cq, 1, &completion);
  }
}

/* After this the device has finished all earlier requests. */
static void send_between(const struct stage* stage, const struct buffer* buffer) {
  const struct ibv_sge segment = part_of(buffer, 1);
  const struct buffer last_byte = {buffer->bytes + kSize - 1, buffer->mr};
  post_receive(stage->back, &last_byte, 1);
  post(stage->front, IBV_WR_SEND, &segment, 0, NULL, 0);
  expect(finish(stage, 1), IBV_WC_SUCCESS);
}

static void write_to_the_same_bytes(void) {
  const struct stage one = set_up(kCompletions), other = set_up(kCompletions);
  struct buffer near = make_buffer(one.pd), far = make_buffer(one.pd), other_near = make_buffer(other.pd);
  struct buffer same = {far.bytes, ibv_reg_mr(other.pd, far.bytes, kSize, kRights)};
  check(same.mr != NULL, "ibv_reg_mr");
  write_quietly(&one, &near, &far, 2);
  if (mended) send_between(&one, &near);
  write_quietly(&other, &other_near, &same, 3);
  send_between(&one, &near);
  send_between(&other, &other_near);
  deregister(&same);
  drop_buffer(&near);
  drop_buffer(&other_near);
  drop_buffer(&far);
  take_down(&one);
  take_down(&other);
}

static const struct {
  const char* name;
  void (*make)(void);
} bugs[] = {
    {"deregistered", write_to_deregistered_memory},
    {"released", send_from_deregistered_memory},
    {"foreign", send_from_foreign_domain},
    {"unknown", send_by_an_unknown_key},
    {"beyond", write_too_far},
    {"readonly", receive_in_readonly_memory},
    {"closed", write_to_a_closed_queue_pair},
    {"bound", bind_too_much},
    {"invalid", invalidate_another_key},
    {"datagrams", write_by_datagrams},
    {"small", receive_too_little},
    {"overrun", fill_the_completion_queue},
    {"changed", change_too_early},
    {"unmapped", write_to_unmapped_memory},
    {"gone", send_from_unmapped_memory},
    {"freed", write_to_freed_memory},
    {"remapped", send_from_new_pages},
    {"outstanding", end_too_early},
    {"left", leave_a_domain},
    {"crowded", make_a_small_completion_queue},
    {"overlapping", write_to_the_same_bytes},
    {"more", post_one_more},
};

static bool has_word(char** arguments, const char* word) {
  while (*++arguments != NULL) {
    if (strcmp(*arguments, word) == 0) return true;
  }
  return false;
}

int main(int count, char** arguments) {
  int devices = 0;
  struct ibv_device** list = ibv_get_device_list(&devices);
  check(list != NULL && devices > 0, "ibv_get_device_list");
  device = ibv_open_device(list[0]);
  check(device != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  check(ibv_query_gid(device, 1, kGidIndex, &gid) == 0, "ibv_query_gid");
  mended = has_word(arguments, "mended");
  const bool all = count == 1 || has_word(arguments, "all");
  bool known = false;
  for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
    if (!all && !has_word(arguments, bugs[i].name)) continue;
    known = true;
    bugs[i].make();
  }
  check(known, "the bug's name");
  check(ibv_close_device(device) == 0, "ibv_close_device");
  puts("all went as planned");
  return 0;
}

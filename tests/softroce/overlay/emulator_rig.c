/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

#include "emulator_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct ibv_device** devices;
struct ibv_context* context;
static struct dappledv_region_attr region;
struct ibv_pd* pd;
struct ibv_cq* cq;
struct ibv_srq* srq;
struct ibv_qp* qp;
unsigned char *mine, *theirs;
struct ibv_mr *my_mr, *their_mr;

/* ---- Messages of the emulator ---- */

char said[4096];
static int said_file = -1, kept_stderr = -1;

void begin_listening(void) {
  said_file = memfd_create("said", MFD_CLOEXEC);
  kept_stderr = dup(STDERR_FILENO);
  dup2(said_file, STDERR_FILENO);
}

void end_listening(void) {
  ssize_t length;

  dup2(kept_stderr, STDERR_FILENO);
  length = pread(said_file, said, sizeof(said) - 1, 0);
  said[length < 0 ? 0 : length] = '\0';
  close(said_file);
  close(kept_stderr);
}

bool says(const char* text) {
  if (strstr(said, text)) return true;
  print_error("is  %s\nnot %s\n", said, text);
  return false;
}

int times(const char* text) {
  int count = 0;

  for (const char* at = said; (at = strstr(at, text)); at++) count++;
  return count;
}

const char* finding(const void* address, size_t length, int count, size_t offset, enum finding_kind kind) {
  static const char* const words[] = {
      [kUnsynced] = "lines that the device changed were never synced",
      [kUnclean] = "lines that the CPU changed were never synced for the peers that may read them",
      [kLost] = "bytes from the device were lost to the write-back of lines that the CPU had changed",
  };
  static char text[256];

  snprintf(text, sizeof(text), "region %p of %zu bytes: %d %s, the first at offset %zu\n", address, length, count,
           words[kind], offset);
  return text;
}

int deregister(struct ibv_mr* mr) {
  void* const address = mr->addr;
  const size_t length = mr->length;
  int error;

  begin_listening();
  error = ibv_dereg_mr(mr);
  if (error == 0) {
    mr = ibv_reg_mr(pd, address, length, kAccess);
    if (mr) ibv_dereg_mr(mr);
  }
  end_listening();
  return error;
}

/* ---- A connected queue pair ---- */

static bool modify(int state, int mask, const struct ibv_ah_attr* path) {
  struct ibv_qp_attr change = {
      .qp_state = state,
      .port_num = 1,
      .qp_access_flags = kWindowless,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = qp->qp_num,
      .max_dest_rd_atomic = 1,
      .max_rd_atomic = 1,
      .timeout = 18,
      .retry_cnt = 7,
      .rnr_retry = 7,
  };

  if (path) change.ah_attr = *path;
  return ibv_modify_qp(qp, &change, IBV_QP_STATE | mask) == 0;
}

static bool connect_to_itself(void) {
  struct ibv_ah_attr path = {.port_num = 1, .is_global = 1, .grh = {.hop_limit = 1}};
  struct ibv_port_attr port;

  if (ibv_query_port(context, 1, &port) != 0) return false;
  /* The link-local GID comes first. */
  for (int i = port.gid_tbl_len < 16 ? port.gid_tbl_len - 1 : 15; i >= 0; i--) {
    if (ibv_query_gid(context, 1, i, &path.grh.dgid) != 0 || path.grh.dgid.global.interface_id == 0) continue;
    path.grh.sgid_index = (uint8_t)i;
    break;
  }
  return modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, NULL) &&
         modify(IBV_QPS_RTR,
                IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                    IBV_QP_MIN_RNR_TIMER,
                &path) &&
         modify(IBV_QPS_RTS,
                IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, NULL);
}

static bool make_queue_pair(void) {
  struct ibv_srq_init_attr queue = {.attr = {.max_wr = 8, .max_sge = 1}};
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};

  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  srq = pd ? ibv_create_srq(pd, &queue) : NULL;
  init.send_cq = init.recv_cq = cq;
  init.srq = srq;
  init.cap.max_send_wr = 8;
  init.cap.max_send_sge = 1;
  init.cap.max_inline_data = kInline;
  qp = cq && srq ? ibv_create_qp(pd, &init) : NULL;
  return qp && connect_to_itself();
}

int set_up(void** state) {
  (void)state;
  mine = mmap(NULL, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mine == MAP_FAILED) return -1;
  theirs = mine + kSize;
  context = ibv_open_device(devices[0]);
  if (!context || dappledv_attach(context, DAPPLEDV_ATTACH_EMULATE) != 0) return -1;
  struct dappledv_device_attr attr = {0};
  if (dappledv_query_device(context, &attr) != 0 || dappledv_init_region(&attr, &region) != 0) return -1;
  if (!make_queue_pair()) return -1;
  my_mr = ibv_reg_mr(pd, mine, kSize, kAccess);
  their_mr = ibv_reg_mr(pd, theirs, kSize, kAccess);
  return my_mr && their_mr ? 0 : -1;
}

int tear_down(void** state) {
  bool closed;

  (void)state;
  closed = ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0 &&
           (!my_mr || ibv_dereg_mr(my_mr) == 0) && (!their_mr || ibv_dereg_mr(their_mr) == 0) &&
           ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0;
  return munmap(mine, 2 * kSize) == 0 && closed ? 0 : -1;
}

void for_device(const void* at, size_t length) {
  const struct iovec range = {.iov_base = (void*)(uintptr_t)at, .iov_len = length};

  assert_int_equal(dappledv_sync_for_device(&region, &range, 1), 0);
}

void for_cpu(const void* at, size_t length) {
  const struct iovec range = {.iov_base = (void*)(uintptr_t)at, .iov_len = length};

  assert_int_equal(dappledv_sync_for_cpu(&region, &range, 1), 0);
}

enum ibv_wc_status completion(enum ibv_wc_opcode opcode) {
  const time_t deadline = time(NULL) + kPatienceS;
  struct ibv_wc done;

  while (time(NULL) < deadline) {
    if (ibv_poll_cq(cq, 1, &done) != 1) continue;
    if (done.status == IBV_WC_SUCCESS) assert_int_equal(done.opcode, opcode);
    return done.status;
  }
  fail_msg("no completion");
  return IBV_WC_GENERAL_ERR;
}

struct ibv_sge segment(const void* at, uint32_t length) {
  const struct ibv_sge sge = {.addr = (uintptr_t)at, .length = length, .lkey = my_mr->lkey};

  return sge;
}

void post(struct ibv_send_wr* request, struct ibv_sge* sge) {
  struct ibv_send_wr* bad;

  if (sge) {
    request->sg_list = sge;
    request->num_sge = 1;
  }
  request->send_flags |= IBV_SEND_SIGNALED;
  assert_int_equal(ibv_post_send(qp, request, &bad), 0);
}

void write_as_it_is(const void* from, uint32_t length, uint64_t to, uint32_t rkey, unsigned int flags) {
  struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = flags};
  struct ibv_sge sge = segment(from, length);

  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = rkey;
  post(&request, &sge);
  assert_int_equal(completion(IBV_WC_RDMA_WRITE), IBV_WC_SUCCESS);
}

void device_writes(unsigned char value, uint32_t length, uint64_t to, uint32_t rkey) {
  memset(mine, value, length);
  for_device(mine, length);
  write_as_it_is(mine, length, to, rkey, 0);
}

bool is_all(const unsigned char* at, size_t length, unsigned char value) {
  for (size_t i = 0; i < length; i++) {
    if (at[i] != value) return false;
  }
  return true;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * freed CASE: a program that is built with AddressSanitizer. Two of its queue pairs are connected to each other. CASE
 * names the buffer that it frees too early: "target" or "source" of an RDMA Write, "read" for the target of an RDMA
 * Read, "receive" for that of a Send; "none" for a program without a bug.
 */
#include <string.h>

#include "tests/native/sanitizers/pair.h"

static void run(struct ibv_qp* qp, enum ibv_wr_opcode opcode, const struct buffer* local, const struct buffer* remote) {
  struct ibv_sge segment = segment_of(local);
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = (uintptr_t)remote->bytes;
  request.wr.rdma.rkey = remote->mr->rkey;
  struct ibv_send_wr* bad = NULL;
  struct ibv_wc completion;
  check(ibv_post_send(qp, &request, &bad) == 0, "ibv_post_send");
  do {
    while (ibv_poll_cq(cq, 1, &completion) == 0) {
    }
    check(completion.status == IBV_WC_SUCCESS, "a request");
  } while (completion.opcode == IBV_WC_RECV);
}

int main(int count, char** arguments) {
  const char* which = count == 2 ? arguments[1] : "none";
  open_with_queue();
  struct ibv_qp* front = make_queue_pair();
  struct ibv_qp* back = make_queue_pair();
  connect_pair(front, back, kTimeout);

  const struct buffer near = make_buffer(), far = make_buffer();
  memset(near.bytes, 1, kSize);
  memset(far.bytes, 1, kSize);
  struct ibv_sge received = segment_of(&far);
  struct ibv_recv_wr receive = {.sg_list = &received, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  check(ibv_post_recv(back, &receive, &bad) == 0, "ibv_post_recv");
  if (strcmp(which, "target") == 0 || strcmp(which, "receive") == 0) free(far.bytes);
  if (strcmp(which, "source") == 0 || strcmp(which, "read") == 0) free(near.bytes);
  if (strcmp(which, "receive") != 0 && strcmp(which, "read") != 0) run(front, IBV_WR_RDMA_WRITE, &near, &far);
  if (strcmp(which, "receive") != 0) run(front, IBV_WR_RDMA_READ, &near, &far);
  run(front, IBV_WR_SEND, &near, &far);
  puts("all went well");
  return 0;
}

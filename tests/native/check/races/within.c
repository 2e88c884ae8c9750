/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * within raced|polled: a program whose queue pairs are connected to each other writes the same bytes through two of
 * them: at once, or the second time after the completion of the first one.
 */
#include <stdbool.h>
#include <string.h>

#include "tests/native/sanitizers/pair.h"

static struct buffer near, far;

static void post_write(struct ibv_qp* qp) {
  struct ibv_sge segment = segment_of(&near);
  struct ibv_send_wr request = {
      .sg_list = &segment, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = (uintptr_t)far.bytes;
  request.wr.rdma.rkey = far.mr->rkey;
  struct ibv_send_wr* bad = NULL;
  check(ibv_post_send(qp, &request, &bad) == 0, "ibv_post_send");
}

static void poll_one(void) {
  struct ibv_wc completion;
  while (ibv_poll_cq(cq, 1, &completion) == 0) {
  }
  check(completion.status == IBV_WC_SUCCESS, "a Write");
}

int main(int count, char** words) {
  check(count == 2, "one word");
  const bool polls = strcmp(words[1], "polled") == 0;
  open_with_queue();
  struct ibv_qp* qps[4];
  for (int i = 0; i < 4; i++) qps[i] = make_queue_pair();
  connect_pair(qps[0], qps[1], kTimeout);
  connect_pair(qps[2], qps[3], kTimeout);
  near = make_buffer();
  memset(near.bytes, 1, kSize);
  far = make_buffer();
  post_write(qps[0]);
  if (polls) poll_one();
  post_write(qps[2]);
  if (!polls) poll_one();
  poll_one();
  puts("all went as planned");
  return 0;
}

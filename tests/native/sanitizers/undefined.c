/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * undefined CASE: a program for sanitizers that know undefined bytes. Two of its queue pairs are connected to each
 * other. CASE names the bytes that it forgets to define: "sent" for the source of an RDMA Write, "inline" for inline
 * bytes, "read" for the bytes that the peer reads, "counter" for the target of an atomic; "none" for a program without
 * a bug. The program looks at everything that the device has stored.
 */
#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#endif
#endif
#include <string.h>

#include "tests/native/sanitizers/pair.h"

static struct ibv_qp *front, *back;

/* MemorySanitizer runs with poison_in_malloc=0, because libibverbs and others were built without it. */
static struct buffer make_undefined(void) {
  const struct buffer made = make_buffer();
#ifdef __has_feature
#if __has_feature(memory_sanitizer)
  __msan_poison(made.bytes, kSize);
#endif
#endif
  return made;
}

/* A branch for each byte: memcheck and MemorySanitizer report branches on undefined bytes. */
static void look_at(const void* memory, size_t size, const char* what) {
  const unsigned char* bytes = memory;
  unsigned good = 0;
  for (size_t i = 0; i < size; ++i) good += bytes[i] == 7 ? 1 : 0;
  check(good == size, what);
}

static void wait_for(unsigned completions) {
  while (completions > 0) {
    struct ibv_wc found[2];
    const int count = ibv_poll_cq(cq, 2, found);
    check(count >= 0, "ibv_poll_cq");
    for (int i = 0; i < count; ++i) {
      check(found[i].status == IBV_WC_SUCCESS && found[i].wr_id == 5, "a completion");
      check(found[i].qp_num == front->qp_num || found[i].qp_num == back->qp_num, "the completion's queue pair");
      --completions;
    }
  }
}

static void run(struct ibv_send_wr* request, const struct buffer* local, uint32_t size, unsigned completions) {
  struct ibv_sge segment = {(uintptr_t)local->bytes, size, local->mr->lkey};
  request->wr_id = 5;
  request->sg_list = &segment;
  request->num_sge = 1;
  request->send_flags |= IBV_SEND_SIGNALED;
  struct ibv_send_wr* bad;
  check(ibv_post_send(front, request, &bad) == 0, "ibv_post_send");
  wait_for(completions);
}

static void write_and_read(bool source_is_undefined, bool target_is_undefined) {
  const struct buffer near = make_undefined(), far = make_undefined();
  if (!source_is_undefined) memset(near.bytes, 7, kSize);
  struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = {.remote_addr = (uintptr_t)far.bytes, .rkey = far.mr->rkey}};
  if (!target_is_undefined) run(&request, &near, kSize, 1);
  if (!source_is_undefined && !target_is_undefined) look_at(far.bytes, kSize, "what was written");
  request.opcode = IBV_WR_RDMA_READ;
  const struct buffer again = make_undefined();
  run(&request, &again, kSize, 1);
  if (!source_is_undefined && !target_is_undefined) look_at(again.bytes, kSize, "what was read");
}

static void send(bool inline_is_undefined) {
  const struct buffer near = make_undefined(), far = make_undefined();
  memset(near.bytes, 7, kSize - (inline_is_undefined ? 1 : 0));
  struct ibv_sge segment = segment_of(&far);
  struct ibv_recv_wr receive = {.wr_id = 5, .sg_list = &segment, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(back, &receive, &bad) == 0, "ibv_post_recv");
  struct ibv_send_wr request = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
  run(&request, &near, kSize, 2);
  look_at(far.bytes, kSize - 1, "what was received");
}

static void count(bool counter_is_undefined) {
  const struct buffer near = make_undefined(), far = make_undefined();
  if (!counter_is_undefined) memset(far.bytes, 7, kSize);
  struct ibv_send_wr request = {
      .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
      .wr.atomic = {.remote_addr = (uintptr_t)far.bytes, .rkey = far.mr->rkey, .compare_add = 0}};
  run(&request, &near, 8, 1);
  if (counter_is_undefined) return;
  look_at(near.bytes, 8, "what the counter was");
  look_at(far.bytes, 8, "the counter");
}

static void query(void) {
  struct ibv_device_attr attr;
  check(ibv_query_device(device, &attr) == 0 && attr.max_qp > 0 && attr.max_cq > 0, "ibv_query_device");
  struct ibv_port_attr port;
  check(ibv_query_port(device, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE, "ibv_query_port");
  struct ibv_qp_attr state;
  struct ibv_qp_init_attr init;
  check(ibv_query_qp(front, &state, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
  check(state.qp_state == IBV_QPS_RTS && init.cap.max_send_wr >= 4, "ibv_query_qp's result");
  struct ibv_recv_wr receive = {.num_sge = 1000};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(front, &receive, &bad) != 0 && bad == &receive, "ibv_post_recv of a bad request");
}

int main(int count_of_arguments, char** arguments) {
  const char* which = count_of_arguments == 2 ? arguments[1] : "none";
  open_with_queue();
  front = make_queue_pair();
  back = make_queue_pair();
  connect_pair(front, back, kTimeout);
  query();
  write_and_read(strcmp(which, "sent") == 0, strcmp(which, "read") == 0);
  send(strcmp(which, "inline") == 0);
  count(strcmp(which, "counter") == 0);
  puts("all went well");
  return 0;
}

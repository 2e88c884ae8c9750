/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * poisoned CASE: a program that is built with AddressSanitizer, and that poisons the free memory of its pool itself.
 * "receive" posts such memory; "none" posts it after it is in use again.
 */
#include <sanitizer/asan_interface.h>
#include <string.h>

#include "tests/native/sanitizers/pair.h"

int main(int count, char** arguments) {
  open_with_queue();
  struct ibv_qp* front = make_queue_pair();
  struct ibv_qp* back = make_queue_pair();
  connect_pair(front, back, kTimeout);
  const struct buffer block = make_buffer();
  __asan_poison_memory_region(block.bytes, kSize);
  if (count != 2 || strcmp(arguments[1], "receive") != 0) __asan_unpoison_memory_region(block.bytes, kSize);
  struct ibv_sge segment = segment_of(&block);
  struct ibv_recv_wr receive = {.sg_list = &segment, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  check(ibv_post_recv(back, &receive, &bad) == 0, "ibv_post_recv");
  puts("all went as planned");
  return 0;
}

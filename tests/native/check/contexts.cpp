// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// contexts NAME: posts requests whose wr_id is the address of a block of the heap, and frees the block before the poll
// of the completion, for dapple-run --check. "correct" makes no mistake.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kSize = 64;

struct Context {
  int number;
  char rest[100];
};

uint64_t id_of(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// A block by its address, and its end.
uint64_t made() {
  return id_of(calloc(4, sizeof(Context)));
}
void give_back(uint64_t block) {
  free(reinterpret_cast<void*>(block));
}

bool ends(ibv_cq* cq, uint64_t context, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == status && completion.wr_id == context;
}

bool send(Pair& pair, uint64_t context, unsigned flags = IBV_SEND_SIGNALED) {
  return post_send(pair.a, context, IBV_WR_RDMA_WRITE, 0, kSize, &pair.b, 0, flags) == 0;
}

bool free_send(Pair& pair, size_t inside) {
  const uint64_t block = made();
  if (!send(pair, block + inside)) return false;
  give_back(block);
  return ends(pair.a.cq, block + inside);
}

bool free_receive(Pair& pair) {
  const uint64_t context = made();
  if (pair.srq == nullptr) {
    if (post_receive(pair.b, context, 0, kSize) != 0) return false;
  } else {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.b.buffer), kSize, pair.b.mr->lkey};
    ibv_recv_wr request = {}, *bad = nullptr;
    request.wr_id = context;
    request.sg_list = &segment;
    request.num_sge = 1;
    if (ibv_post_srq_recv(pair.srq, &request, &bad) != 0) return false;
  }
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0) return false;
  give_back(context);
  return ends(pair.b.cq, context) && ends(pair.a.cq, 1);
}

// The same block again and again, and a request without a completion between them.
bool be_correct(Pair& pair) {
  for (int i = 0; i < 20; i++) {
    const uint64_t context = made();
    if (!send(pair, context, 0) || !send(pair, context) || !ends(pair.a.cq, context)) return false;
    give_back(context);
    const uint64_t other = made();
    if (post_receive(pair.b, other, 0, kSize) != 0 || post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0) return false;
    if (!ends(pair.b.cq, other) || !ends(pair.a.cq, 1)) return false;
    give_back(other);
  }
  return true;
}

// The flushed completions of a program that is done with its requests.
bool free_before_flush(Pair& pair) {
  const uint64_t context = made();
  if (post_receive(pair.b, context, 0, kSize) != 0) return false;
  give_back(context);
  return to_error(pair.b.qp) && ends(pair.b.cq, context, IBV_WC_WR_FLUSH_ERR);
}

// The receive of a queue pair that is gone.
bool free_before_end(Pair& pair) {
  const uint64_t context = made();
  if (post_receive(pair.b, context, 0, kSize) != 0) return false;
  give_back(context);
  if (ibv_destroy_qp(pair.b.qp) != 0) return false;
  pair.b.qp = nullptr;
  return true;
}

// The address of the request's own memory is only a name. Its memory is in use until the program has an answer.
bool use_as_name(Pair& pair) {
  void* const memory = aligned_alloc(4096, 4096);
  const uint64_t block = id_of(memory);
  ibv_mr* const mr = ibv_reg_mr(pair.pd, memory, 4096, 0);
  if (mr == nullptr || post_receive(pair.b, 1, 0, kSize) != 0) return false;
  ibv_sge segment = {block, kSize, mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = block;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  if (ibv_post_send(pair.a.qp, &request, &bad) != 0 || !ends(pair.b.cq, 1)) return false;
  give_back(block);
  return ends(pair.a.cq, block) && ibv_dereg_mr(mr) == 0;
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  const bool is_shared = count == 2 && strcmp(words[1], "shared-receive") == 0;
  const std::unique_ptr<Pair> pair(make_pair({.srq = is_shared}));
  if (pair == nullptr || count != 2) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  const char* name = words[1];
  bool good = false;
  if (strcmp(name, "correct") == 0) {
    good = be_correct(*pair);
  } else if (strcmp(name, "send") == 0) {
    good = free_send(*pair, 0);
  } else if (strcmp(name, "inside") == 0) {
    good = free_send(*pair, sizeof(Context) + 8);
  } else if (strcmp(name, "flushed") == 0) {
    good = free_before_flush(*pair);
  } else if (strcmp(name, "destroyed") == 0) {
    good = free_before_end(*pair);
  } else if (strcmp(name, "name") == 0) {
    good = use_as_name(*pair);
  } else {
    good = free_receive(*pair);
  }
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}

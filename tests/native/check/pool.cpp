// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// pool NAME: uses a block of a memory pool of its own that is free, for dapple-run --check. "correct" makes no mistake.
#include <infiniband/dappledv.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr size_t kBlock = 256;
constexpr size_t kBlocks = kBufferSize / kBlock;

// The blocks of an end's buffer.
class Pool {
 public:
  explicit Pool(End& end) : end_(end) { dappledv_mark_free(end.buffer, kBufferSize); }
  // Returns the offset of a block. The oldest block comes first.
  size_t take() {
    const size_t at = next_++ % kBlocks * kBlock;
    dappledv_mark_used(end_.buffer + at, kBlock);
    return at;
  }
  void give_back(size_t at) { dappledv_mark_free(end_.buffer + at, kBlock); }

 private:
  End& end_;
  size_t next_ = 0;
};

bool ends(ibv_cq* cq) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == IBV_WC_SUCCESS;
}

bool send(Pair& pair, size_t from) {
  return post_send(pair.a, 1, IBV_WR_SEND, from, kBlock) == 0;
}

bool write(Pair& pair, size_t from, size_t to) {
  return post_send(pair.a, 1, IBV_WR_RDMA_WRITE, from, kBlock, &pair.b, to) == 0;
}

bool be_correct(Pair& pair, Pool& sent, Pool& received) {
  for (int i = 0; i < 1000; i++) {
    const size_t from = sent.take(), to = received.take();
    if (post_receive(pair.b, 1, to, kBlock) != 0 || !send(pair, from) || !ends(pair.a.cq) || !ends(pair.b.cq))
      return false;
    if (!write(pair, from, to) || !ends(pair.a.cq)) return false;
    sent.give_back(from);
    received.give_back(to);
  }
  return true;
}

// Each of these uses a block that is free.
bool use_free(Pair& pair, Pool& sent, Pool& received, const char* name) {
  const size_t from = sent.take(), to = received.take();
  if (strcmp(name, "sent") == 0) {
    sent.give_back(from);
    return write(pair, from, to) && ends(pair.a.cq);
  }
  if (strcmp(name, "received") == 0) {
    received.give_back(to);
    return post_receive(pair.b, 1, to, kBlock) == 0;
  }
  if (strcmp(name, "written") == 0) {
    received.give_back(to);
    return write(pair, from, to) && ends(pair.a.cq);
  }
  if (strcmp(name, "in-use") == 0) {
    if (!write(pair, from, to)) return false;
    sent.give_back(from);
    return ends(pair.a.cq);
  }
  return false;
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  const std::unique_ptr<Pair> pair(make_pair({}));
  if (pair == nullptr || count != 2) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  Pool sent(pair->a), received(pair->b);
  const bool is_correct = strcmp(words[1], "correct") == 0;
  const bool good = is_correct ? be_correct(*pair, sent, received) : use_free(*pair, sent, received, words[1]);
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}

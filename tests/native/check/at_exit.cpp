// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Calls verbs in the destructor of a static object, for dapple-run --check and --explain: exit() has ended the objects
// of the main thread before. One call before and several calls in the destructor fail, because the protection domain is
// in use.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kSize = 4000;
constexpr int kCalls = 20;

bool dealloc_fails(const Pair& pair) {
  return ibv_dealloc_pd(pair.pd) == EBUSY;
}

bool transfers(Pair& pair) {
  ibv_wc sent, received;
  memset(pair.a.buffer, 5, kSize);
  memset(pair.b.buffer, 7, kSize);
  if (post_receive(pair.b, 2, 0, kSize) != 0 || post_send(pair.a, 1, IBV_WR_SEND, 0, kSize) != 0) return false;
  if (!wait_for(pair.a.cq, sent) || !wait_for(pair.b.cq, received)) return false;
  return std::all_of(pair.b.buffer, pair.b.buffer + kSize, [](char byte) { return byte == 5; });
}

struct Late {
  Pair* pair = nullptr;

  ~Late() {
    if (pair == nullptr) return;
    bool good = true;
    for (int i = 0; i < kCalls && good; i++) {
      // Takes the memory that the thread's objects have given back.
      void* blocks[] = {malloc(200), malloc(800), malloc(20000)};
      for (void* block : blocks) {
        if (block != nullptr) memset(block, 0xff, 200);
      }
      good = dealloc_fails(*pair) && transfers(*pair);
      for (void* block : blocks) free(block);
    }
    delete pair;
    puts(good ? "all went as planned" : "not as planned");
    fflush(stdout);
  }
};

Late late;

}  // namespace

int main() {
  need_new_namespace();
  late.pair = make_pair({});
  if (late.pair == nullptr) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  return dealloc_fails(*late.pair) && transfers(*late.pair) ? 0 : 1;
}

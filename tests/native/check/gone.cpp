// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// gone NAME LIBRARY: memory that goes without munmap(): the statics of a library, the stack of a thread, a shared
// segment. A peer writes there, or a request still uses it, for dapple-run --check.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include <chrono>
#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSize = 4096;
constexpr size_t kStack = size_t{1} << 26;  // more than the C library keeps for the next thread

ibv_mr* enrol(Pair& pair, void* memory) {
  return ibv_reg_mr(pair.pd, memory, kSize, int{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE);
}

bool write_there(Pair& pair, const ibv_mr& mr) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair.a.buffer), 64, pair.a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(mr.addr);
  request.wr.rdma.rkey = mr.rkey;
  return ibv_post_send(pair.a.qp, &request, &bad) == 0;
}

bool ends_well(Pair& pair) {
  ibv_wc completion;
  return wait_for(pair.a.cq, completion) && completion.status == IBV_WC_SUCCESS;
}

bool fails(Pair& pair) {
  ibv_wc completion;
  return wait_for(pair.a.cq, completion) && completion.status != IBV_WC_SUCCESS;
}

// `stays`: the library has another user.
bool use_library(Pair& pair, const char* path, bool stays) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || (stays && dlopen(path, RTLD_NOW | RTLD_LOCAL) == nullptr)) return false;
  auto* const statics = static_cast<char*>(dlsym(library, "statics"));
  // In the middle, where no byte of the file is.
  ibv_mr* mr = statics == nullptr ? nullptr : enrol(pair, statics + (size_t{1} << 17));
  if (mr == nullptr || !write_there(pair, *mr) || !ends_well(pair) || dlclose(library) != 0) return false;
  if (!write_there(pair, *mr)) return false;
  return (stays ? ends_well(pair) : fails(pair)) && ibv_dereg_mr(mr) == 0;
}

struct OnStack {
  Pair* pair;
  ibv_mr* mr;
  pthread_barrier_t barrier;
};

void* use_stack(void* argument) {
  auto* const on_stack = static_cast<OnStack*>(argument);
  alignas(kSize) char bytes[kSize];
  on_stack->mr = enrol(*on_stack->pair, bytes);
  // The other thread lets a peer write there meanwhile.
  for (int i = 0; i < 2; i++) pthread_barrier_wait(&on_stack->barrier);
  return nullptr;
}

// The check looks again after some milliseconds.
void wait_until_old() {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(40);
  while (Clock::now() < end) sched_yield();
}

bool use_thread(Pair& pair) {
  OnStack on_stack = {&pair, nullptr, {}};
  pthread_attr_t attr;
  pthread_t thread;
  if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, kStack) != 0) return false;
  if (pthread_barrier_init(&on_stack.barrier, nullptr, 2) != 0) return false;
  if (pthread_create(&thread, &attr, use_stack, &on_stack) != 0) return false;
  pthread_barrier_wait(&on_stack.barrier);
  bool good = on_stack.mr != nullptr;
  for (int i = 0; i < 20 && good; i++) good = write_there(pair, *on_stack.mr) && ends_well(pair);
  pthread_barrier_wait(&on_stack.barrier);
  if (pthread_join(thread, nullptr) != 0 || !good) return false;
  wait_until_old();
  return write_there(pair, *on_stack.mr) && fails(pair) && ibv_dereg_mr(on_stack.mr) == 0;
}

struct Segment {
  int id = -1;
  void* memory = nullptr;
};

// `place`: null for any.
bool attach(Segment& segment, void* place = nullptr) {
  if (segment.id < 0) segment.id = shmget(IPC_PRIVATE, kSize, IPC_CREAT | 0600);
  segment.memory = segment.id < 0 ? nullptr : shmat(segment.id, place, 0);
  return segment.memory != nullptr && segment.memory != reinterpret_cast<void*>(-1);
}

bool remove(const Segment& segment) {
  return shmctl(segment.id, IPC_RMID, nullptr) == 0;
}

// The request's bytes go before the poll.
bool detach_used(Pair& pair) {
  Segment segment;
  ibv_mr* mr = attach(segment) ? enrol(pair, segment.memory) : nullptr;
  if (mr == nullptr) return false;
  ibv_sge piece = {reinterpret_cast<uintptr_t>(segment.memory), 64, mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair.b.buffer);
  request.wr.rdma.rkey = pair.b.mr->rkey;
  if (ibv_post_send(pair.a.qp, &request, &bad) != 0 || shmdt(segment.memory) != 0) return false;
  ibv_wc completion;
  return wait_for(pair.a.cq, completion) && ibv_dereg_mr(mr) == 0 && remove(segment);
}

// A peer writes by the old key into another segment in the same place.
bool replace(Pair& pair) {
  Segment segment, other;
  ibv_mr* mr = attach(segment) ? enrol(pair, segment.memory) : nullptr;
  if (mr == nullptr || !write_there(pair, *mr) || !ends_well(pair)) return false;
  void* const place = segment.memory;
  if (shmdt(place) != 0 || !attach(other, place) || !write_there(pair, *mr) || !ends_well(pair)) return false;
  return ibv_dereg_mr(mr) == 0 && remove(segment) && remove(other);
}

// Another place of the same segment goes, and a wrong address.
bool detach_other(Pair& pair) {
  Segment segment;
  ibv_mr* mr = attach(segment) ? enrol(pair, segment.memory) : nullptr;
  void* const place = segment.memory;
  if (mr == nullptr || !attach(segment) || !write_there(pair, *mr)) return false;
  if (shmdt(segment.memory) != 0 || shmdt(static_cast<char*>(place) + 1) == 0 || !ends_well(pair)) return false;
  return write_there(pair, *mr) && ends_well(pair) && ibv_dereg_mr(mr) == 0 && shmdt(place) == 0 && remove(segment);
}

}  // namespace

int main(int count, char** words) {
  need_new_namespace();
  const std::unique_ptr<Pair> pair(make_pair({}));
  if (pair == nullptr || count != 3) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  const char* name = words[1];
  bool good = false;
  if (strcmp(name, "library") == 0) good = use_library(*pair, words[2], false);
  if (strcmp(name, "library-stays") == 0) good = use_library(*pair, words[2], true);
  if (strcmp(name, "stack") == 0) good = use_thread(*pair);
  if (strcmp(name, "segment") == 0) good = detach_used(*pair);
  if (strcmp(name, "segment-replaced") == 0) good = replace(*pair);
  if (strcmp(name, "segment-other") == 0) good = detach_other(*pair);
  puts(good ? "all went as planned" : "not as planned");
  return good ? 0 : 1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes, of which one has its memory in a GPU: Writes, Reads and Sends, which placement would copy if both ends
// were plain memory. Runs under dapple-run.
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <memory>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/fake_cuda.hpp"
#include "tests/native/verbs/two_processes.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kSize = 40'000;
constexpr uint64_t kRounds = 20;

struct Shared {
  Meeting meeting;
  std::atomic<uint64_t> address{0};
  std::atomic<uint32_t> rkey{0};
  std::atomic<uint64_t> received{0};
  std::atomic<bool> over{false};
};

Shared* shared;

// The memory that this end uses: at `address` for the device, and at `bytes` for the test.
struct Place {
  uint64_t address = 0;
  char* bytes = nullptr;
  ibv_mr* mr = nullptr;
};

bool make_place(End& end, bool is_gpu, Place& place) {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  int device = 0;
  place = {reinterpret_cast<uintptr_t>(end.buffer), end.buffer, nullptr};
  if (is_gpu) {
    if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || cuCtxCreate_v2(&context, 0, device) != 0) return false;
    if (cuMemAlloc_v2(&pointer, kSize) != 0) return false;
    place = {pointer, fake_cuda_bytes(pointer), nullptr};
  }
  void* memory = reinterpret_cast<void*>(static_cast<uintptr_t>(place.address));
  place.mr = ibv_reg_mr(end.mr->pd, memory, kSize, static_cast<int>(kPeerRights));
  return place.mr != nullptr;
}

void fill(char* bytes, uint64_t round) {
  for (uint32_t i = 0; i < kSize; i++) bytes[i] = static_cast<char>(i * 3 + i / 253 + round);
}
bool has(const char* bytes, uint64_t round) {
  const auto wanted = std::make_unique<char[]>(kSize);
  fill(wanted.get(), round);
  return memcmp(bytes, wanted.get(), kSize) == 0;
}

// Gets `kRounds` messages, each into the whole memory.
int receive_all(bool is_gpu) {
  const auto end = std::make_unique<End>();
  Place place;
  if (!open_end(*end, shared->meeting, 1, 18) || !make_place(*end, is_gpu, place)) return 1;
  shared->address = place.address;
  shared->rkey = place.mr->rkey;
  ibv_sge piece = {place.address, kSize, place.mr->lkey};
  ibv_recv_wr request = {1, nullptr, &piece, 1}, *bad = nullptr;
  if (ibv_post_recv(end->qp, &request, &bad) != 0 || !meet(shared->meeting)) return 2;
  for (uint64_t round = 0; round < kRounds; round++) {
    ibv_wc completion = {};
    if (!wait_for(end->cq, completion) || completion.status != IBV_WC_SUCCESS) return 3;
    if (!has(place.bytes, 3 * round)) return 4;
    if (ibv_post_recv(end->qp, &request, &bad) != 0) return 5;
    shared->received = round + 1;
  }
  return await(kPatience, [] { return shared->over.load(); }) ? 0 : 6;
}

bool run(End& end, const Place& place, ibv_wr_opcode opcode) {
  ibv_sge piece = {place.address, kSize, place.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {shared->address, shared->rkey};
  ibv_wc completion = {};
  return ibv_post_send(end.qp, &request, &bad) == 0 && wait_for(end.cq, completion) &&
         completion.status == IBV_WC_SUCCESS;
}

int send_all(bool is_gpu) {
  const auto end = std::make_unique<End>();
  Place place;
  Watcher watcher;
  soft::StatusReply before, status;
  if (!open_end(*end, shared->meeting, 0, 18) || !make_place(*end, is_gpu, place) || !meet(shared->meeting)) return 1;
  if (!watcher.status(before)) return 2;
  for (uint64_t round = 0; round < kRounds; round++) {
    fill(place.bytes, 3 * round);
    if (!run(*end, place, IBV_WR_SEND)) return 3;
    if (!await(kPatience, [&] { return shared->received == round + 1; })) return 4;
    fill(place.bytes, 3 * round + 1);
    if (!run(*end, place, IBV_WR_RDMA_WRITE)) return 5;
    fill(place.bytes, 3 * round + 2);
    if (!run(*end, place, IBV_WR_RDMA_READ) || !has(place.bytes, 3 * round + 1)) return 6;
  }
  if (!watcher.status(status)) return 7;
  for (const char* key : {"placed_writes", "placed_reads", "fetches"}) {
    if (counter(status, key) != counter(before, key)) failed("copied without a packet: ", key);
  }
  shared->over = true;
  return static_cast<int>(failures());
}

}  // namespace

int main(int argc, char**) {
  const bool sends = argc == 1;  // the sender has the GPU; otherwise the receiver
  shared = prepare_stage<Shared>();
  return run_ends([sends] { return receive_all(!sends); }, [sends] { return send_all(sends); });
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program that loads libcuda.so.1 after it has registered plain memory: that of the machine, with a GPU, or the
// tests' own (LD_LIBRARY_PATH). Skipped without a GPU. Runs under dapple-run.
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/fake_cuda.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr size_t kSize = 1 << 20;
constexpr int kDmabuf = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

void* library = nullptr;

template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}
#define CUDA(name) find<decltype(name)>(#name)

CUdeviceptr gpu = 0;

uint64_t address_of(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

ibv_wc_status run(ibv_wr_opcode opcode, ibv_sge piece, uint64_t remote, uint32_t rkey, uint64_t add = 0) {
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic = {remote, add, 0, rkey};
  } else {
    request.wr.rdma = {remote, rkey};
  }
  ibv_wc completion = {};
  if (ibv_post_send(pair->a.qp, &request, &bad) != 0 || !wait_for(pair->a.cq, completion)) return IBV_WC_GENERAL_ERR;
  return completion.status;
}

bool has(uint64_t offset, const char* bytes, size_t count) {
  static char copy[kBufferSize];
  return CUDA(cuMemcpyDtoH_v2)(copy, gpu + offset, count) == 0 && memcmp(copy, bytes, count) == 0;
}

void use(ibv_mr* mr, uint64_t offset) {
  assert_non_null(mr);
  for (const uint32_t length : {1u, 8u, 4097u, uint32_t{kBufferSize}}) {
    for (uint32_t i = 0; i < length; ++i) pair->a.buffer[i] = static_cast<char>(i * 5 + length);
    const ibv_sge piece = {address_of(pair->a.buffer), length, pair->a.mr->lkey};
    const ibv_sge there = {gpu + offset, length, mr->lkey};
    assert_int_equal(run(IBV_WR_RDMA_WRITE, piece, gpu + offset, mr->rkey), IBV_WC_SUCCESS);
    assert_true(has(offset, pair->a.buffer, length));
    assert_int_equal(run(IBV_WR_RDMA_WRITE, there, address_of(pair->b.buffer), pair->b.mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(pair->b.buffer, pair->a.buffer, length);
    memset(pair->a.buffer, 0, length);
    assert_int_equal(run(IBV_WR_RDMA_READ, piece, gpu + offset, mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(pair->b.buffer, pair->a.buffer, length);
  }
  const uint64_t forty = 40, forty_two = 42;
  assert_int_equal(CUDA(cuMemcpyHtoD_v2)(gpu + offset, &forty, sizeof forty), 0);
  assert_int_equal(
      run(IBV_WR_ATOMIC_FETCH_AND_ADD, {address_of(pair->a.buffer), 8, pair->a.mr->lkey}, gpu + offset, mr->rkey, 2),
      IBV_WC_SUCCESS);
  assert_memory_equal(pair->a.buffer, &forty, sizeof forty);
  assert_true(has(offset, reinterpret_cast<const char*>(&forty_two), sizeof forty_two));
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

void address__of_the_gpu(void**) {
  use(ibv_reg_mr(pair->pd, reinterpret_cast<void*>(gpu + 64), kSize - 64, static_cast<int>(kPeerRights)), 64);
}

void dmabuf__of_the_gpu(void**) {
  int file = -1;
  // The tests' library makes no dma-bufs for a program that was not linked with it.
  if (dlsym(library, "fake_cuda_streams") != nullptr) skip();
  const auto get = CUDA(cuMemGetHandleForAddressRange);
  if (get == nullptr || get(&file, gpu, kSize, kDmabuf, 0) != 0) skip();
  use(ibv_reg_dmabuf_mr(pair->pd, 64, kSize - 64, gpu + 64, file, static_cast<int>(kPeerRights)), 64);
  close(file);
}

void freed_memory__fails_the_request(void**) {
  ibv_mr* mr = ibv_reg_mr(pair->pd, reinterpret_cast<void*>(gpu), kSize, static_cast<int>(kPeerRights));
  assert_non_null(mr);
  assert_int_equal(CUDA(cuMemFree_v2)(gpu), 0);
  const ibv_sge piece = {address_of(pair->a.buffer), 8, pair->a.mr->lkey};
  assert_int_equal(run(IBV_WR_RDMA_WRITE, piece, gpu, mr->rkey), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

// As the runtime of CUDA: in the primary context.
bool load() {
  CUcontext context = nullptr;
  int device = 0;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  return library != nullptr && CUDA(cuInit)(0) == 0 && CUDA(cuDeviceGet)(&device, 0) == 0 &&
         CUDA(cuDevicePrimaryCtxRetain)(&context, device) == 0 && CUDA(cuCtxPushCurrent_v2)(context) == 0 &&
         CUDA(cuMemAlloc_v2)(&gpu, kSize) == 0;
}

}  // namespace

int main() {
  need_new_namespace();
  if (!begin({})) return 1;
  if (!load()) skip_program("there is no GPU with CUDA's driver");
  const CMUnitTest tests[] = {
      cmocka_unit_test(address__of_the_gpu),
      cmocka_unit_test(dmabuf__of_the_gpu),
      cmocka_unit_test(freed_memory__fails_the_request),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  finish(nullptr);
  return failed;
}

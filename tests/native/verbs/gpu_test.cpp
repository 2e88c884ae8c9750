// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions in the memory of a GPU, with a libcuda.so.1 of the test's own (fake_cuda.hpp). Runs under dapple-run.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/fake_cuda.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr size_t kSize = 60'000;
constexpr int kIllegalAddress = 700;

// The program's context, in which all memory is that does not say otherwise.
CUcontext context = nullptr;

struct Gpu {
  CUdeviceptr at = 0;
  char* bytes = nullptr;  // where the test sees them
  ibv_mr* mr = nullptr;

  ibv_sge piece(size_t offset, uint32_t length) const { return {at + offset, length, mr->lkey}; }
};

void* pointer_of(CUdeviceptr at) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(at));
}

Gpu make_gpu(int (*allocate)(CUdeviceptr*, size_t) = cuMemAlloc_v2, unsigned rights = kPeerRights) {
  Gpu gpu;
  assert_int_equal(allocate(&gpu.at, kSize), 0);
  gpu.bytes = fake_cuda_bytes(gpu.at);
  gpu.mr = ibv_reg_mr(pair->pd, pointer_of(gpu.at), kSize, static_cast<int>(rights));
  assert_non_null(gpu.mr);
  return gpu;
}

void drop(const Gpu& gpu) {
  assert_int_equal(ibv_dereg_mr(gpu.mr), 0);
  assert_int_equal(fake_cuda_streams(), 0);
  if (gpu.bytes != nullptr) assert_int_equal(cuMemFree_v2(gpu.at), 0);
}

ibv_sge own(size_t offset, uint32_t length) {
  return {reinterpret_cast<uintptr_t>(pair->a.buffer) + offset, length, pair->a.mr->lkey};
}

ibv_sge peers(size_t offset, uint32_t length) {
  return {reinterpret_cast<uintptr_t>(pair->b.buffer) + offset, length, pair->b.mr->lkey};
}

void fill(char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + static_cast<size_t>(seed) + i / 251);
}

int post(ibv_wr_opcode opcode, ibv_sge* pieces, int count, uint64_t remote = 0, uint32_t rkey = 0, uint64_t compare = 0,
         uint64_t swap = 0) {
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = pieces;
  request.num_sge = count;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    request.wr.atomic = {remote, compare, swap, rkey};
  } else {
    request.wr.rdma = {remote, rkey};
  }
  return ibv_post_send(pair->a.qp, &request, &bad);
}

ibv_wc_status status_of(ibv_cq* cq) {
  ibv_wc completion = {};
  return wait_for(cq, completion) ? completion.status : IBV_WC_GENERAL_ERR;
}

ibv_wc_status run(ibv_wr_opcode opcode, ibv_sge piece, uint64_t remote = 0, uint32_t rkey = 0, uint64_t compare = 0,
                  uint64_t swap = 0) {
  if (post(opcode, &piece, 1, remote, rkey, compare, swap) != 0) return IBV_WC_GENERAL_ERR;
  return status_of(pair->a.cq);
}

void receive(ibv_sge* pieces, int count) {
  ibv_recv_wr request = {7, nullptr, pieces, count}, *bad = nullptr;
  if (pair->srq != nullptr) {
    assert_int_equal(ibv_post_srq_recv(pair->srq, &request, &bad), 0);
  } else {
    assert_int_equal(ibv_post_recv(pair->b.qp, &request, &bad), 0);
  }
}

// The thread's own context must be as before.
int finish_gpu(void** state) {
  CUcontext now = nullptr;
  fake_cuda_fail_copies(0);
  return finish(state) != 0 || cuCtxGetCurrent(&now) != 0 || now != context;
}

void writes_and_reads__reach_both_ends(void**) {
  assert_true(begin({}));
  const Gpu here = make_gpu(), there = make_gpu();
  for (const uint32_t length : {1u, 8u, 1000u, 4096u, 32'768u, static_cast<uint32_t>(kSize - 3)}) {
    fill(here.bytes, kSize, static_cast<int>(length));
    memset(there.bytes, 0, kSize);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, here.piece(3, length), there.at + 1, there.mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(there.bytes + 1, here.bytes + 3, length);
    assert_int_equal(there.bytes[0], 0);
    assert_int_equal(there.bytes[1 + length], 0);
    memset(here.bytes, 0, kSize);
    assert_int_equal(run(IBV_WR_RDMA_READ, here.piece(0, length), there.at + 1, there.mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(here.bytes, there.bytes + 1, length);
    // The other end in plain memory.
    fill(pair->a.buffer, length, 5);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, length), there.at, there.mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(there.bytes, pair->a.buffer, length);
    assert_int_equal(
        run(IBV_WR_RDMA_READ, here.piece(0, length), reinterpret_cast<uintptr_t>(pair->b.buffer), pair->b.mr->rkey),
        IBV_WC_SUCCESS);
    assert_memory_equal(here.bytes, pair->b.buffer, length);
  }
  assert_int_equal(fake_cuda_streams(), 2);
  assert_int_equal(ibv_dereg_mr(here.mr), 0);
  assert_int_equal(cuMemFree_v2(here.at), 0);
  drop(there);
}

void messages__of_mixed_pieces(void**) {
  assert_true(begin({}));
  const Gpu here = make_gpu(), there = make_gpu();
  fill(here.bytes, kSize, 1);
  fill(pair->a.buffer, kSize, 2);
  for (const uint32_t part : {16u, 5000u, 18'000u}) {
    ibv_sge places[] = {there.piece(10, part + 1), peers(0, part), there.piece(40'000, part)};
    receive(places, 3);
    ibv_sge pieces[] = {own(0, part), here.piece(9, part), own(40'000, part)};
    assert_int_equal(post(IBV_WR_SEND, pieces, 3), 0);
    assert_int_equal(status_of(pair->a.cq), IBV_WC_SUCCESS);
    assert_int_equal(status_of(pair->b.cq), IBV_WC_SUCCESS);
    assert_memory_equal(there.bytes + 10, pair->a.buffer, part);
    assert_int_equal(there.bytes[10 + part], here.bytes[9]);
    assert_memory_equal(pair->b.buffer, here.bytes + 10, part - 1);
    assert_int_equal(pair->b.buffer[part - 1], pair->a.buffer[40'000]);
    assert_memory_equal(there.bytes + 40'000, pair->a.buffer + 40'001, part - 1);
  }
  assert_int_equal(ibv_dereg_mr(here.mr), 0);
  drop(there);
}

void srq__receives_into_a_gpu(void**) {
  PairOptions options;
  options.srq = true;
  assert_true(begin(options));
  const Gpu gpu = make_gpu();
  ibv_sge place = gpu.piece(100, 1000);
  for (const unsigned flags : {0u, unsigned{IBV_SEND_INLINE}}) {
    receive(&place, 1);
    fill(pair->a.buffer, 64, static_cast<int>(flags));
    assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 64, nullptr, 0, IBV_SEND_SIGNALED | flags), 0);
    expect(pair->b.cq, 7, IBV_WC_SUCCESS, IBV_WC_RECV);
    expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    assert_memory_equal(gpu.bytes + 100, pair->a.buffer, 64);
  }
  drop(gpu);
}

void atomics__change_words_of_a_gpu(void**) {
  assert_true(begin({}));
  const Gpu gpu = make_gpu();
  const uint64_t forty = 40, forty_two = 42, seven = 7;
  uint64_t word = 0;
  memcpy(gpu.bytes + 8, &forty, sizeof forty);
  // The result goes into a GPU, too.
  assert_int_equal(run(IBV_WR_ATOMIC_FETCH_AND_ADD, gpu.piece(16, 8), gpu.at + 8, gpu.mr->rkey, 2), IBV_WC_SUCCESS);
  assert_memory_equal(gpu.bytes + 16, &forty, sizeof forty);
  assert_memory_equal(gpu.bytes + 8, &forty_two, sizeof forty_two);
  for (int round = 0; round < 2; ++round) {
    assert_int_equal(run(IBV_WR_ATOMIC_CMP_AND_SWP, own(0, 8), gpu.at + 8, gpu.mr->rkey, 42, 7), IBV_WC_SUCCESS);
    memcpy(&word, pair->a.buffer, sizeof word);
    assert_int_equal(word, round == 0 ? 42 : 7);
    assert_memory_equal(gpu.bytes + 8, &seven, sizeof seven);
  }
  drop(gpu);
}

void windows__are_bound_over_a_gpu(void**) {
  PairOptions options;
  options.windows = true;
  assert_true(begin(options));
  const Gpu gpu = make_gpu(cuMemAlloc_v2, kPeerRights | IBV_ACCESS_MW_BIND);
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  assert_non_null(window);
  ibv_mw_bind bind = {};
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {gpu.mr, gpu.at + 100, 200, IBV_ACCESS_REMOTE_WRITE};
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), 0);
  assert_int_equal(status_of(pair->b.cq), IBV_WC_SUCCESS);
  fill(pair->a.buffer, 200, 3);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 200), gpu.at + 100, window->rkey), IBV_WC_SUCCESS);
  assert_memory_equal(gpu.bytes + 100, pair->a.buffer, 200);
  assert_int_equal(ibv_dereg_mr(gpu.mr), EBUSY);
  assert_int_equal(ibv_dealloc_mw(window), 0);
  drop(gpu);
}

// Nobody polls, so a thread of the device copies, which has no context.
void progress__without_the_program(void**) {
  assert_true(begin({}));
  const Gpu gpu = make_gpu();
  memset(gpu.bytes, 0, kSize);
  memset(pair->a.buffer, 'p', kSize);
  ibv_sge piece = own(0, kSize);
  assert_int_equal(post(IBV_WR_RDMA_WRITE, &piece, 1, gpu.at, gpu.mr->rkey), 0);
  assert_true(wait_for_byte(gpu.bytes + kSize - 1, 'p'));
  assert_int_equal(status_of(pair->a.cq), IBV_WC_SUCCESS);
  assert_memory_equal(gpu.bytes, pair->a.buffer, kSize);
  drop(gpu);
}

int allocate_in_pool(CUdeviceptr* pointer, size_t size) {
  return cuMemAllocAsync(pointer, size, nullptr);
}

int allocate_in_another_context(CUdeviceptr* pointer, size_t size) {
  CUcontext other = nullptr;
  int device = 0;
  if (cuDeviceGet(&device, 1) != 0 || cuCtxCreate_v2(&other, 0, device) != 0) return 1;
  const int error = cuMemAlloc_v2(pointer, size);
  return cuCtxPopCurrent_v2(&other) | error;
}

void contexts__of_a_pool_and_of_another_device(void**) {
  for (auto* allocate : {allocate_in_pool, allocate_in_another_context}) {
    assert_true(begin({}));
    const Gpu gpu = make_gpu(allocate);
    fill(pair->a.buffer, 5000, 9);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 5000), gpu.at + 5, gpu.mr->rkey), IBV_WC_SUCCESS);
    assert_memory_equal(gpu.bytes + 5, pair->a.buffer, 5000);
    drop(gpu);
    finish(nullptr);
  }
}

void memory_that_the_cpu_reaches__is_plain(void**) {
  assert_true(begin({}));
  CUdeviceptr managed = 0;
  void* host = nullptr;
  assert_int_equal(cuMemAllocManaged(&managed, kSize, 1), 0);
  assert_int_equal(cuMemHostAlloc(&host, kSize, 0), 0);
  for (void* memory : {pointer_of(managed), host}) {
    ibv_mr* mr = ibv_reg_mr(pair->pd, memory, kSize, static_cast<int>(kPeerRights));
    assert_non_null(mr);
    assert_int_equal(fake_cuda_streams(), 0);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 5000), reinterpret_cast<uintptr_t>(memory), mr->rkey),
                     IBV_WC_SUCCESS);
    assert_memory_equal(memory, pair->a.buffer, 5000);
    assert_int_equal(ibv_dereg_mr(mr), 0);
  }
}

int error_of(CUdeviceptr at, size_t length) {
  errno = 0;
  ibv_mr* mr = ibv_reg_mr(pair->pd, pointer_of(at), length, static_cast<int>(kPeerRights));
  return mr == nullptr ? errno : ibv_dereg_mr(mr);
}

void registration__needs_bytes_of_one_allocation(void**) {
  assert_true(begin({}));
  CUdeviceptr at = 0;
  assert_int_equal(cuMemAlloc_v2(&at, kSize), 0);
  assert_int_equal(error_of(at + 100, kSize - 100), 0);
  assert_int_equal(error_of(at + 100, kSize - 99), EFAULT);
  assert_int_equal(error_of(at, SIZE_MAX / 2), EFAULT);
  // A child of fork() has no CUDA.
  const pid_t child = fork();
  if (child == 0) {
    ibv_context* own_context = open_loopback();
    ibv_pd* pd = own_context == nullptr ? nullptr : ibv_alloc_pd(own_context);
    _exit(pd != nullptr && ibv_reg_mr(pd, pointer_of(at), kSize, static_cast<int>(kPeerRights)) == nullptr ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(cuMemFree_v2(at), 0);
  assert_int_equal(error_of(at, kSize), EFAULT);
  assert_int_equal(fake_cuda_streams(), 0);
}

void reregistration__moves_into_a_gpu_and_back(void**) {
  assert_true(begin({}));
  CUdeviceptr at = 0;
  assert_int_equal(cuMemAlloc_v2(&at, kSize), 0);
  ibv_mr* mr = ibv_reg_mr(pair->pd, pair->b.buffer, kSize, static_cast<int>(kPeerRights));
  assert_non_null(mr);
  fill(pair->a.buffer, 100, 1);
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, pointer_of(at), kSize, 0), 0);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 100), at, mr->rkey), IBV_WC_SUCCESS);
  assert_memory_equal(fake_cuda_bytes(at), pair->a.buffer, 100);
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, pair->b.buffer, kSize, 0), 0);
  assert_int_equal(fake_cuda_streams(), 0);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 100), reinterpret_cast<uintptr_t>(pair->b.buffer), mr->rkey),
                   IBV_WC_SUCCESS);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 100);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(cuMemFree_v2(at), 0);
}

void dmabuf__known_by_the_gpus_address(void**) {
  assert_true(begin({}));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  CUdeviceptr at = 0, other = 0;
  int file = -1;
  assert_int_equal(cuMemAlloc_v2(&at, kSize), 0);
  assert_int_equal(cuMemAlloc_v2(&other, kSize), 0);
  const size_t size = (kSize + page - 1) / page * page;
  assert_int_equal(cuMemGetHandleForAddressRange(&file, at, size, 1, 0), 0);
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, 64, kSize - 64, at + 64, file, static_cast<int>(kPeerRights));
  assert_non_null(mr);
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pair->pd, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  fill(pair->a.buffer, 5000, 4);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 5000), at + 64, mr->rkey), IBV_WC_SUCCESS);
  assert_memory_equal(fake_cuda_bytes(at) + 64, pair->a.buffer, 5000);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  // No address of a GPU, and one that would have the dma-buf begin before its allocation.
  for (const CUdeviceptr iova : {CUdeviceptr{64}, other - page + 64, other + page + 64}) {
    errno = 0;
    assert_null(ibv_reg_dmabuf_mr(pair->pd, 64, 64, iova, file, static_cast<int>(kPeerRights)));
    assert_int_equal(errno, EOPNOTSUPP);
  }
  close(file);
  assert_int_equal(fake_cuda_streams(), 0);
}

// For each kind of access: the memory is freed under its region, or all copies fail.
void unreachable_memory__fails_requests(void**) {
  for (const bool is_freed : {true, false}) {
    for (int access = 0; access < 6; ++access) {
      assert_true(begin({}));
      Gpu gpu = make_gpu();
      ibv_sge place = gpu.piece(0, 100);
      if (access == 5) receive(&place, 1);
      if (is_freed) {
        assert_int_equal(cuMemFree_v2(gpu.at), 0);
        gpu.bytes = nullptr;
      } else {
        fake_cuda_fail_copies(kIllegalAddress);
      }
      const auto theirs = reinterpret_cast<uintptr_t>(pair->b.buffer);
      switch (access) {
        case 0:
          assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 100), gpu.at, gpu.mr->rkey), IBV_WC_REM_ACCESS_ERR);
          break;
        case 1:
          assert_int_equal(run(IBV_WR_RDMA_READ, own(0, 100), gpu.at, gpu.mr->rkey), IBV_WC_REM_ACCESS_ERR);
          break;
        case 2:
          assert_int_equal(run(IBV_WR_ATOMIC_FETCH_AND_ADD, own(0, 8), gpu.at, gpu.mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
          break;
        case 3:
          assert_int_equal(run(IBV_WR_RDMA_WRITE, place, theirs, pair->b.mr->rkey), IBV_WC_LOC_PROT_ERR);
          break;
        case 4:
          assert_int_equal(run(IBV_WR_RDMA_READ, place, theirs, pair->b.mr->rkey), IBV_WC_LOC_PROT_ERR);
          break;
        default:
          assert_int_equal(run(IBV_WR_SEND, own(0, 100)), IBV_WC_REM_OP_ERR);
          assert_int_equal(status_of(pair->b.cq), IBV_WC_LOC_PROT_ERR);
      }
      fake_cuda_fail_copies(0);
      assert_int_equal(ibv_dereg_mr(gpu.mr), 0);
      if (!is_freed) assert_int_equal(cuMemFree_v2(gpu.at), 0);
      finish(nullptr);
    }
  }
  // The streams of the freed memory, whose contexts might have been gone.
  assert_int_equal(fake_cuda_streams(), 6);
}

// Other keys than the region's do not reach the memory.
void rights__are_checked_before_the_memory(void**) {
  struct {
    unsigned rights;
    size_t offset;
    bool is_others_key;
  } const kWrong[] = {
      {IBV_ACCESS_LOCAL_WRITE, 0, false},
      {kPeerRights, kSize - 99, false},
      {kPeerRights, 0, true},
  };
  for (const auto& wrong : kWrong) {
    assert_true(begin({}));
    const Gpu gpu = make_gpu(cuMemAlloc_v2, wrong.rights);
    const uint32_t key = wrong.is_others_key ? pair->b.mr->rkey : gpu.mr->rkey;
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(0, 100), gpu.at + wrong.offset, key), IBV_WC_REM_ACCESS_ERR);
    drop(gpu);
    finish(nullptr);
  }
}

// The CPU copies inline bytes. Under --check the report comes before the crash.
void inline_request__crashes(void**) {
  assert_true(begin({}));
  const Gpu gpu = make_gpu();
  ibv_sge piece = gpu.piece(0, 64);
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  signal(SIGSEGV, [](int) { _exit(9); });
  ibv_post_send(pair->a.qp, &request, &bad);
  fail();
}

}  // namespace

int main(int argc, char** argv) {
  need_new_namespace();
  int device = 0;
  if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || cuCtxCreate_v2(&context, 0, device) != 0) return 1;
  const CMUnitTest usual[] = {
      cmocka_unit_test_teardown(writes_and_reads__reach_both_ends, finish_gpu),
      cmocka_unit_test_teardown(messages__of_mixed_pieces, finish_gpu),
      cmocka_unit_test_teardown(srq__receives_into_a_gpu, finish_gpu),
      cmocka_unit_test_teardown(atomics__change_words_of_a_gpu, finish_gpu),
      cmocka_unit_test_teardown(windows__are_bound_over_a_gpu, finish_gpu),
      cmocka_unit_test_teardown(progress__without_the_program, finish_gpu),
      cmocka_unit_test_teardown(contexts__of_a_pool_and_of_another_device, finish_gpu),
      cmocka_unit_test_teardown(memory_that_the_cpu_reaches__is_plain, finish_gpu),
      cmocka_unit_test_teardown(registration__needs_bytes_of_one_allocation, finish_gpu),
      cmocka_unit_test_teardown(reregistration__moves_into_a_gpu_and_back, finish_gpu),
      cmocka_unit_test_teardown(dmabuf__known_by_the_gpus_address, finish_gpu),
  };
  const CMUnitTest mistakes[] = {
      cmocka_unit_test_teardown(rights__are_checked_before_the_memory, finish_gpu),
      cmocka_unit_test_teardown(unreachable_memory__fails_requests, finish_gpu),
  };
  const CMUnitTest crash[] = {cmocka_unit_test(inline_request__crashes)};
  const bool all = argc == 1;
  int failed = 0;
  if (all || strcmp(argv[1], "without-mistakes") == 0) failed = cmocka_run_group_tests(usual, nullptr, nullptr);
  if (all || strcmp(argv[1], "mistakes") == 0) failed += cmocka_run_group_tests(mistakes, nullptr, nullptr);
  if (!all && strcmp(argv[1], "inline") == 0) failed = cmocka_run_group_tests(crash, nullptr, nullptr);
  return failed;
}

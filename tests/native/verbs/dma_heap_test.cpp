// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions of memory from the kernel's dma-heap. Runs under dapple-run; skips where the kernel has none.
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr char kHeap[] = "/dev/dma_heap/system";
constexpr uint32_t kLength = 3000;
constexpr uint64_t kOffset = 64;
constexpr uint64_t kIova = 0x10040;

size_t size() {
  return 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A dma-buf of two pages. access: O_RDWR or O_RDONLY.
int make_dmabuf(unsigned access) {
  const int heap = open(kHeap, O_RDONLY | O_CLOEXEC);
  assert_true(heap >= 0);
  dma_heap_allocation_data made = {};
  made.len = size();
  made.fd_flags = access | O_CLOEXEC;
  assert_int_equal(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &made), 0);
  close(heap);
  return static_cast<int>(made.fd);
}

// The CPU looks at the memory between these two.
void begin_view(int dmabuf) {
  const dma_buf_sync sync = {DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
  assert_int_equal(ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync), 0);
}
void end_view(int dmabuf) {
  const dma_buf_sync sync = {DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW};
  assert_int_equal(ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync), 0);
}

void transfer(ibv_wr_opcode opcode, uint32_t key, ibv_wc_opcode ends_as) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), kLength, pair->a.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 7;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = kIova;
  request.wr.rdma.rkey = key;
  assert_int_equal(ibv_post_send(pair->a.qp, &request, &bad), 0);
  expect(pair->a.cq, 7, IBV_WC_SUCCESS, ends_as);
}

void region__of_a_dma_heap__is_read_and_written(void**) {
  const int dmabuf = make_dmabuf(O_RDWR);
  assert_true(begin({}));
  void* mapped = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
  assert_ptr_not_equal(mapped, MAP_FAILED);
  char* view = static_cast<char*>(mapped);
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, kOffset, size() - kOffset, kIova, dmabuf, static_cast<int>(kPeerRights));
  assert_non_null(mr);
  memset(pair->a.buffer, 'w', kLength);
  transfer(IBV_WR_RDMA_WRITE, mr->rkey, IBV_WC_RDMA_WRITE);
  begin_view(dmabuf);
  for (size_t i = 0; i < size(); ++i)
    assert_int_equal(view[i], i >= kOffset && i < kOffset + kLength ? 'w' : 0);  // a heap's memory is zero at first
  memset(view, 'r', size());
  end_view(dmabuf);
  transfer(IBV_WR_RDMA_READ, mr->rkey, IBV_WC_RDMA_READ);
  for (uint32_t i = 0; i < kLength; ++i) assert_int_equal(pair->a.buffer[i], 'r');
  // The region keeps the memory.
  munmap(mapped, size());
  close(dmabuf);
  memset(pair->a.buffer, 0, kLength);
  transfer(IBV_WR_RDMA_READ, mr->rkey, IBV_WC_RDMA_READ);
  for (uint32_t i = 0; i < kLength; ++i) assert_int_equal(pair->a.buffer[i], 'r');
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

void region__that_is_written__needs_a_descriptor_for_writing(void**) {
  const int dmabuf = make_dmabuf(O_RDONLY);
  assert_true(begin({}));
  assert_null(ibv_reg_dmabuf_mr(pair->pd, 0, size(), 0, dmabuf, IBV_ACCESS_LOCAL_WRITE));
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, 0, size(), kIova, dmabuf, IBV_ACCESS_REMOTE_READ);
  assert_non_null(mr);
  memset(pair->a.buffer, 'x', kLength);
  transfer(IBV_WR_RDMA_READ, mr->rkey, IBV_WC_RDMA_READ);
  for (uint32_t i = 0; i < kLength; ++i) assert_int_equal(pair->a.buffer[i], 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  close(dmabuf);
}

}  // namespace

int main() {
  const int heap = open(kHeap, O_RDONLY | O_CLOEXEC);
  if (heap < 0) skip_program("this program cannot open /dev/dma_heap/system: ", strerror(errno));
  close(heap);
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(region__of_a_dma_heap__is_read_and_written, finish),
      cmocka_unit_test_teardown(region__that_is_written__needs_a_descriptor_for_writing, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

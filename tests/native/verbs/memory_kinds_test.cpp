// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions that are not plain memory: null regions, device memory, on-demand paging, dma-bufs. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// False under --check, which counts mistakes.
bool makes_mistakes = true;

struct Place {
  uint64_t address;
  uint32_t key;
};

Place own(size_t offset = 0) {
  return {reinterpret_cast<uintptr_t>(pair->a.buffer) + offset, pair->a.mr->lkey};
}

Place peers(size_t offset = 0) {
  return {reinterpret_cast<uintptr_t>(pair->b.buffer) + offset, pair->b.mr->rkey};
}

// One request of end a. `add`: of a fetch and add.
ibv_wc_status run(ibv_wr_opcode opcode, Place local, uint32_t length, Place remote, uint64_t add = 0) {
  ibv_sge segment = {local.address, length, local.key};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = remote.address;
    request.wr.atomic.rkey = remote.key;
    request.wr.atomic.compare_add = add;
  } else {
    request.wr.rdma.remote_addr = remote.address;
    request.wr.rdma.rkey = remote.key;
  }
  ibv_wc completion = {};
  if (ibv_post_send(pair->a.qp, &request, &bad) != 0 || !wait_for(pair->a.cq, completion)) return IBV_WC_GENERAL_ERR;
  return completion.status;
}

bool all(const char* bytes, char value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

void null_region__sends_zeros_and_drops_what_comes(void**) {
  assert_true(begin({}));
  ibv_mr* mr = ibv_alloc_null_mr(pair->pd);
  assert_non_null(mr);
  const Place nothing = {0x123456789, mr->lkey};
  for (const uint32_t length : {8u, 1000u, 60'000u}) {
    memset(pair->b.buffer, 'b', kBufferSize);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, nothing, length, peers()), IBV_WC_SUCCESS);
    assert_true(all(pair->b.buffer, 0, length));
    assert_true(all(pair->b.buffer + length, 'b', kBufferSize - length));
    assert_int_equal(run(IBV_WR_RDMA_READ, nothing, length, peers()), IBV_WC_SUCCESS);
  }
  // A message whose middle nobody wants.
  ibv_sge pieces[] = {{reinterpret_cast<uintptr_t>(pair->b.buffer), 10, pair->b.mr->lkey},
                      {0, 80, mr->lkey},
                      {reinterpret_cast<uintptr_t>(pair->b.buffer) + 10, 10, pair->b.mr->lkey}};
  ibv_recv_wr receive = {3, nullptr, pieces, 3}, *bad = nullptr;
  assert_int_equal(ibv_post_recv(pair->b.qp, &receive, &bad), 0);
  for (int i = 0; i < 100; ++i) pair->a.buffer[i] = static_cast<char>(i);
  assert_int_equal(run(IBV_WR_SEND, own(), 100, {0, 0}), IBV_WC_SUCCESS);
  expect(pair->b.cq, 3, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 10);
  assert_memory_equal(pair->b.buffer + 10, pair->a.buffer + 90, 10);
  // No peer reaches it.
  if (makes_mistakes) assert_int_equal(run(IBV_WR_RDMA_READ, own(), 8, {0, mr->lkey}), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_dealloc_pd(pair->pd), EBUSY);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

ibv_dm* alloc_dm(size_t length, uint32_t log_align = 0) {
  ibv_alloc_dm_attr attr = {};
  attr.length = length;
  attr.log_align_req = log_align;
  errno = 0;
  return ibv_alloc_dm(pair->context, &attr);
}

void device_memory__written_read_and_counted_in(void**) {
  assert_true(begin({}));
  ibv_dm* dm = alloc_dm(4096);
  assert_non_null(dm);
  ibv_mr* mr = ibv_reg_dm_mr(pair->pd, dm, 1024, 2048, kPeerRights | IBV_ACCESS_ZERO_BASED);
  assert_non_null(mr);
  memset(pair->a.buffer, 'd', 2048);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 2048, {0, mr->rkey}), IBV_WC_SUCCESS);
  char copy[4096];
  assert_int_equal(ibv_memcpy_from_dm(copy, dm, 0, sizeof copy), 0);
  assert_true(all(copy, 0, 1024) && all(copy + 1024, 'd', 2048) && all(copy + 3072, 0, 1024));
  const uint64_t forty = 40;
  assert_int_equal(ibv_memcpy_to_dm(dm, 1024, &forty, sizeof forty), 0);
  assert_int_equal(run(IBV_WR_ATOMIC_FETCH_AND_ADD, own(), 8, {0, mr->rkey}, 2), IBV_WC_SUCCESS);
  assert_memory_equal(pair->a.buffer, &forty, sizeof forty);
  uint64_t sum = 0;
  assert_int_equal(ibv_memcpy_from_dm(&sum, dm, 1024, sizeof sum), 0);
  assert_int_equal(sum, 42);
  // Sent from there, by offsets as well.
  assert_int_equal(run(IBV_WR_RDMA_WRITE, {0, mr->lkey}, 16, peers()), IBV_WC_SUCCESS);
  assert_memory_equal(pair->b.buffer, &sum, sizeof sum);
  assert_int_equal(pair->b.buffer[8], 'd');
  if (makes_mistakes) assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 8, {2041, mr->rkey}), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_free_dm(dm), EBUSY);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_free_dm(dm), 0);
}

void device_memory__bad_input_is_refused(void**) {
  assert_true(begin({}));
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(pair->context, nullptr, &attr), 0);
  assert_true(attr.max_dm_size > 0);
  assert_null(alloc_dm(0));
  assert_int_equal(errno, EINVAL);
  assert_null(alloc_dm(8, 40));
  assert_int_equal(errno, EINVAL);
  assert_null(alloc_dm(attr.max_dm_size + 1));
  assert_int_equal(errno, ENOMEM);
  ibv_dm* dm = alloc_dm(attr.max_dm_size);
  assert_non_null(dm);
  assert_null(alloc_dm(1));
  assert_int_equal(errno, ENOMEM);
  char bytes[8] = {};
  assert_int_equal(ibv_memcpy_to_dm(dm, 2, bytes, 4), EFAULT);
  assert_int_equal(ibv_memcpy_to_dm(dm, 0, bytes, 6), EFAULT);
  assert_int_equal(ibv_memcpy_from_dm(bytes, dm, attr.max_dm_size, 4), EFAULT);
  assert_int_equal(ibv_memcpy_from_dm(bytes, dm, UINT64_MAX - 3, 8), EFAULT);
  struct {
    uint64_t offset;
    size_t length;
    unsigned access;
  } const kWrong[] = {
      {0, 8, IBV_ACCESS_LOCAL_WRITE},                                  // not by offsets
      {0, 8, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED},         // no local right
      {0, attr.max_dm_size + 1, IBV_ACCESS_ZERO_BASED},                // beyond
      {UINT64_MAX, 8, IBV_ACCESS_ZERO_BASED},                          // wraps around
      {0, 8, unsigned{IBV_ACCESS_ON_DEMAND} | IBV_ACCESS_ZERO_BASED},  // no such right
  };
  for (const auto& wrong : kWrong) {
    errno = 0;
    assert_null(ibv_reg_dm_mr(pair->pd, dm, wrong.offset, wrong.length, wrong.access));
    assert_int_equal(errno, EINVAL);
  }
  assert_int_equal(ibv_free_dm(dm), 0);
}

size_t page_size() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

char* map_pages(size_t count, void* where = nullptr) {
  return static_cast<char*>(mmap(where, count * page_size(), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED), -1, 0));
}

void on_demand__follows_the_programs_memory(void**) {
  const size_t page = page_size();
  assert_true(begin({}));
  char* memory = map_pages(2);
  assert_ptr_not_equal(memory, MAP_FAILED);
  ibv_mr* mr = ibv_reg_mr(pair->pd, memory, 2 * page, kPeerRights | IBV_ACCESS_ON_DEMAND);
  assert_non_null(mr);
  const Place first = {reinterpret_cast<uintptr_t>(memory), mr->rkey};
  memset(pair->a.buffer, 'o', 64);
  // Not there at the registration's time, or anew: the device sees the memory of now.
  for (int round = 0; round < 3; ++round) {
    assert_ptr_equal(map_pages(2, memory), memory);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 64, first), IBV_WC_SUCCESS);
    assert_true(all(memory, 'o', 64));
    memcpy(memory + page, &round, sizeof round);
    assert_int_equal(run(IBV_WR_RDMA_READ, own(100), sizeof round, {first.address + page, mr->rkey}), IBV_WC_SUCCESS);
    assert_memory_equal(pair->a.buffer + 100, &round, sizeof round);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, {first.address, mr->lkey}, 64, peers()), IBV_WC_SUCCESS);
    assert_true(all(pair->b.buffer, 'o', 64));
  }
  assert_int_equal(mprotect(memory, page, PROT_READ), 0);
  assert_int_equal(run(IBV_WR_RDMA_READ, own(100), 64, first), IBV_WC_SUCCESS);
  if (makes_mistakes) assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 64, first), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  finish(nullptr);
  // A sender's memory that is gone.
  assert_true(begin({}));
  mr = ibv_reg_mr(pair->pd, memory, 2 * page, kPeerRights | IBV_ACCESS_ON_DEMAND);
  assert_non_null(mr);
  munmap(memory, 2 * page);
  if (makes_mistakes)
    assert_int_equal(run(IBV_WR_RDMA_WRITE, {first.address, mr->lkey}, 64, peers()), IBV_WC_LOC_PROT_ERR);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

char* remapped = nullptr;
std::atomic<bool> remapping_ends{false};

// Takes two pages away and gives them back. No other thread can get the addresses meanwhile.
void* remap(void*) {
  while (!remapping_ends.load()) {
    mmap(remapped, 2 * page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    map_pages(2, remapped);
  }
  return nullptr;
}

// Writes and Reads until one fails. Returns its status.
ibv_wc_status access_remapped(const ibv_mr& mr) {
  const Place place = {reinterpret_cast<uintptr_t>(remapped) + 100, mr.rkey};
  const auto length = static_cast<uint32_t>(page_size());
  ibv_wc_status status = IBV_WC_SUCCESS;
  while (status == IBV_WC_SUCCESS) {
    status = run(IBV_WR_RDMA_WRITE, own(), length, place);
    if (status == IBV_WC_SUCCESS) status = run(IBV_WR_RDMA_READ, own(), length, place);
  }
  return status;
}

// Each failure needs another pair.
void on_demand__memory_goes_away_during_an_access(void**) {
  constexpr int kFailures = 400;
  remapped = map_pages(2);
  assert_ptr_not_equal(remapped, MAP_FAILED);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, remap, nullptr), 0);
  for (int i = 0; i < kFailures; ++i) {
    assert_true(begin({}));
    ibv_mr* mr = ibv_reg_mr(pair->pd, remapped, 2 * page_size(), kPeerRights | IBV_ACCESS_ON_DEMAND);
    assert_non_null(mr);
    assert_int_equal(access_remapped(*mr), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    finish(nullptr);
  }
  remapping_ends.store(true);
  pthread_join(thread, nullptr);
  munmap(remapped, 2 * page_size());
}

void on_demand__the_whole_address_space(void**) {
  assert_true(begin({}));
  errno = 0;
  assert_null(ibv_reg_mr_iova(pair->pd, nullptr, SIZE_MAX, 4096, int{IBV_ACCESS_ON_DEMAND}));
  assert_int_equal(errno, EINVAL);
  ibv_mr* mr = ibv_reg_mr(pair->pd, nullptr, SIZE_MAX, kPeerRights | IBV_ACCESS_ON_DEMAND);
  assert_non_null(mr);
  memset(pair->a.buffer, 'i', 64);
  const auto anywhere = reinterpret_cast<uintptr_t>(pair->b.buffer);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, {own().address, mr->lkey}, 64, {anywhere, mr->rkey}), IBV_WC_SUCCESS);
  assert_true(all(pair->b.buffer, 'i', 64));
  if (makes_mistakes) assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 64, {0, mr->rkey}), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

// As the kernel, whatever the device.
void iova__keeps_the_place_in_the_page(void**) {
  const size_t page = page_size();
  assert_true(begin({}));
  char* memory = map_pages(2);
  assert_ptr_not_equal(memory, MAP_FAILED);
  for (const int rights : {int{kPeerRights}, int{kPeerRights | IBV_ACCESS_ON_DEMAND}}) {
    for (const uint64_t wrong : {uint64_t{0}, uint64_t{63}, uint64_t{page}, uint64_t{page + 65}}) {
      errno = 0;
      assert_null(ibv_reg_mr_iova(pair->pd, memory + 64, page, wrong, rights));
      assert_int_equal(errno, EINVAL);
    }
    ibv_mr* mr = ibv_reg_mr_iova(pair->pd, memory + 64, page, 5 * page + 64, rights);
    assert_non_null(mr);
    memset(memory, 0, 2 * page);
    memset(pair->a.buffer, 'v', 8);
    assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 8, {5 * page + 64, mr->rkey}), IBV_WC_SUCCESS);
    assert_true(all(memory, 0, 64) && all(memory + 64, 'v', 8) && all(memory + 72, 0, 64));
    assert_int_equal(ibv_dereg_mr(mr), 0);
  }
  munmap(memory, 2 * page);
}

// As in the kernel: a region has at least one page.
void region__without_bytes__needs_a_page(void**) {
  const size_t page = page_size();
  assert_true(begin({}));
  char* memory = map_pages(1);
  assert_ptr_not_equal(memory, MAP_FAILED);
  for (void* empty : {static_cast<void*>(memory), static_cast<void*>(nullptr)}) {
    errno = 0;
    assert_null(ibv_reg_mr(pair->pd, empty, 0, kPeerRights));
    assert_int_equal(errno, EINVAL);
  }
  ibv_mr* mr = ibv_reg_mr(pair->pd, memory + 1, 0, kPeerRights);
  assert_non_null(mr);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  munmap(memory, page);
  errno = 0;
  assert_null(ibv_reg_mr(pair->pd, memory + 1, 0, kPeerRights));
  assert_int_equal(errno, EFAULT);
}

void advise__prefetches_what_is_on_demand(void**) {
  const size_t page = page_size();
  assert_true(begin({}));
  char* memory = map_pages(2);
  assert_ptr_not_equal(memory, MAP_FAILED);
  ibv_mr* mr = ibv_reg_mr(pair->pd, memory, 2 * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  ibv_mr* read_only = ibv_reg_mr(pair->pd, memory, 2 * page, int{IBV_ACCESS_ON_DEMAND});
  assert_true(mr != nullptr && read_only != nullptr);
  constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  constexpr auto kWrite = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const auto advise = [&](ibv_advise_mr_advice advice, size_t offset, uint32_t length, uint32_t key,
                          uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(memory) + offset, length, key};
    return ibv_advise_mr(pair->pd, advice, flags, &segment, 1);
  };
  const auto length = static_cast<uint32_t>(2 * page);
  assert_int_equal(advise(kWrite, 0, length, mr->lkey), 0);
  unsigned char resident[2] = {};
  assert_int_equal(mincore(memory, 2 * page, resident), 0);
  assert_true((resident[0] & resident[1] & 1) != 0);
  assert_int_equal(advise(kRead, 0, length, read_only->lkey), 0);
  assert_int_equal(advise(kWrite, 0, length, read_only->lkey), EPERM);
  assert_int_equal(advise(kRead, 1, length, mr->lkey), EFAULT);
  assert_int_equal(advise(kRead, 0, 64, mr->lkey ^ 1), ENOENT);
  assert_int_equal(advise(kRead, 0, 64, pair->a.mr->lkey), EINVAL);
  assert_int_equal(advise(kRead, 0, 64, mr->lkey, 8), EINVAL);
  assert_int_equal(advise(static_cast<ibv_advise_mr_advice>(9), 0, 64, mr->lkey), EOPNOTSUPP);
  assert_int_equal(ibv_advise_mr(pair->pd, kRead, 0, nullptr, 0), EINVAL);
  munmap(memory + page, page);
  assert_int_equal(advise(kRead, 0, length, mr->lkey), EFAULT);
  assert_int_equal(advise(kRead, 0, length, mr->lkey, 0), 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_dereg_mr(read_only), 0);
  munmap(memory, page);
}

int registers(int fd, uint64_t offset, size_t length, uint64_t iova) {
  errno = 0;
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, offset, length, iova, fd, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) return errno;
  return ibv_dereg_mr(mr);
}

void dmabuf__other_files_are_refused(void**) {
  assert_true(begin({}));
  const int file = memfd_create("no-dmabuf", MFD_CLOEXEC);
  assert_true(file >= 0);
  assert_int_equal(ftruncate(file, 4096), 0);
  assert_int_equal(registers(-1, 0, 4096, 0), EBADF);
  assert_int_equal(registers(file, 0, 4096, 0), EINVAL);
  close(file);
}

// A dma-buf of two pages, and the test's own view of them.
struct Udmabuf {
  static constexpr size_t kPages = 2;
  int dmabuf = -1;
  size_t size = 0;
  char* view = nullptr;
};

// False if this kernel makes none.
bool make_udmabuf(Udmabuf& made) {
  const int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (maker < 0) return false;
  made.size = Udmabuf::kPages * page_size();
  const int memory = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(memory >= 0 && ftruncate(memory, static_cast<off_t>(made.size)) == 0);
  assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const udmabuf_create create = {static_cast<uint32_t>(memory), UDMABUF_FLAGS_CLOEXEC, 0, made.size};
  made.dmabuf = ioctl(maker, UDMABUF_CREATE, &create);
  assert_true(made.dmabuf >= 0);
  made.view = static_cast<char*>(mmap(nullptr, made.size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  assert_ptr_not_equal(made.view, MAP_FAILED);
  close(memory);
  close(maker);
  return true;
}

void dmabuf__a_udmabuf_is_mapped(void**) {
  Udmabuf made;
  if (!make_udmabuf(made)) skip();
  assert_true(begin({}));
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, 64, made.size - 64, 0x10040, made.dmabuf, static_cast<int>(kPeerRights));
  assert_non_null(mr);
  close(made.dmabuf);
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  memset(pair->a.buffer, 'm', 32);
  assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 32, {0x10040, mr->rkey}), IBV_WC_SUCCESS);
  assert_true(all(made.view, 0, 64) && all(made.view + 64, 'm', 32));
  if (makes_mistakes) assert_int_equal(run(IBV_WR_RDMA_WRITE, own(), 32, {0x10000, mr->rkey}), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  munmap(made.view, made.size);
}

// Then a thread of the device takes the datagram.
void dmabuf__takes_a_datagram_while_the_program_sleeps(void**) {
  constexpr uint32_t kHeaders = 40, kLength = 100;
  Udmabuf made;
  if (!make_udmabuf(made)) skip();
  assert_true(begin({.channel = true}));
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, 0, made.size, 0, made.dmabuf, IBV_ACCESS_LOCAL_WRITE);
  assert_non_null(mr);
  ibv_qp_init_attr init = {};
  init.qp_type = IBV_QPT_UD;
  init.send_cq = pair->a.cq;
  init.recv_cq = pair->b.cq;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  assert_true(qp != nullptr && connect(qp, 0));
  ibv_sge where = {0, kHeaders + kLength, mr->lkey};
  ibv_recv_wr receive = {1, nullptr, &where, 1}, *bad = nullptr;
  assert_int_equal(ibv_post_recv(qp, &receive, &bad), 0);
  ibv_ah* own_address = make_own_address(*pair);
  assert_non_null(own_address);
  memset(pair->a.buffer, 'd', kLength);
  assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
  assert_int_equal(post_datagram(pair->a, kLength, qp, own_address, qp), 0);
  assert_true(becomes_readable(pair->channel->fd));
  expect(pair->b.cq, 1, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_true(all(made.view + kHeaders, 'd', kLength) && all(made.view + kHeaders + kLength, 0, 100));
  ibv_cq* told = nullptr;
  void* context = nullptr;
  assert_int_equal(ibv_get_cq_event(pair->channel, &told, &context), 0);
  ibv_ack_cq_events(told, 1);
  assert_int_equal(ibv_destroy_ah(own_address), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  close(made.dmabuf);
  munmap(made.view, made.size);
}

}  // namespace

int main(int argc, char** argv) {
  makes_mistakes = argc == 1;
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(null_region__sends_zeros_and_drops_what_comes, finish),
      cmocka_unit_test_teardown(device_memory__written_read_and_counted_in, finish),
      cmocka_unit_test_teardown(device_memory__bad_input_is_refused, finish),
      cmocka_unit_test_teardown(on_demand__follows_the_programs_memory, finish),
      cmocka_unit_test_teardown(on_demand__the_whole_address_space, finish),
      cmocka_unit_test_teardown(iova__keeps_the_place_in_the_page, finish),
      cmocka_unit_test_teardown(region__without_bytes__needs_a_page, finish),
      cmocka_unit_test_teardown(advise__prefetches_what_is_on_demand, finish),
      cmocka_unit_test_teardown(dmabuf__other_files_are_refused, finish),
      cmocka_unit_test_teardown(dmabuf__a_udmabuf_is_mapped, finish),
      cmocka_unit_test_teardown(dmabuf__takes_a_datagram_while_the_program_sleeps, finish),
  };
  const CMUnitTest remapping[] = {cmocka_unit_test(on_demand__memory_goes_away_during_an_access)};
  // That one's failures are mistakes for --check, and a run of its own sees that it does not crash.
  if (argc > 1 && strcmp(argv[1], "remapping") == 0) return cmocka_run_group_tests(remapping, nullptr, nullptr);
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  return makes_mistakes ? failed + cmocka_run_group_tests(remapping, nullptr, nullptr) : failed;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Verbs of newer releases than the header that this is built with: DMA handles (59), device memory as a dma-buf (62)
// and completion counters (65); and the end of many contexts. Runs under dapple-run, and is skipped with an older
// libibverbs.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "provider/private_api/newer_types.hpp"
#include "tests/native/clock.hpp"
#include "tests/native/verbs/rig.hpp"
#include "tests/native/verbs/xrc_domain.hpp"

using namespace dapple::tests;
using namespace dapple::provider;

namespace {

// A function of the program's libibverbs.
template <typename Function>
struct Newer {
  explicit Newer(const char* name) : call(reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name))) {}
  const Function call;
};
#define NEWER(result, name, ...)                                    \
  template <typename... Arguments>                                  \
  result name(Arguments... arguments) {                             \
    static const Newer<result (*)(__VA_ARGS__)> here("ibv_" #name); \
    errno = 0;                                                      \
    return here.call(arguments...);                                 \
  }
NEWER(DmaHandle*, alloc_dmah, ibv_context*, DmaHandleInitAttr*)
NEWER(int, dealloc_dmah, DmaHandle*)
NEWER(ibv_mr*, reg_mr_ex, ibv_pd*, RegionInitAttr*)
NEWER(int, dm_export_dmabuf_fd, ibv_dm*)
NEWER(CompletionCounter*, create_comp_cntr, ibv_context*, CompletionCounterInitAttr*)
NEWER(int, destroy_comp_cntr, CompletionCounter*)
NEWER(int, qp_attach_comp_cntr, ibv_qp*, CompletionCounter*, CompletionCounterAttachAttr*)
NEWER(int, read_comp_cntr, CompletionCounter*, uint64_t*)
NEWER(int, read_err_comp_cntr, CompletionCounter*, uint64_t*)
NEWER(int, set_comp_cntr, CompletionCounter*, uint64_t)
NEWER(int, set_err_comp_cntr, CompletionCounter*, uint64_t)
NEWER(int, inc_comp_cntr, CompletionCounter*, uint64_t)
NEWER(int, inc_err_comp_cntr, CompletionCounter*, uint64_t)
#undef NEWER

int query_caps(ibv_context* context, CompletionCounterCaps* caps, size_t size) {
  static const Newer<int (*)(ibv_context*, CompletionCounterCaps*, size_t)> here("_ibv_query_comp_cntr_caps");
  return here.call(context, caps, size);
}

// The program runs under --check, and a refused call would be a finding.
bool without_mistakes = false;

// Writes the first bytes of the first end's buffer.
void write_from(uint32_t lkey, uint32_t length, uint64_t to, uint32_t rkey) {
  ibv_sge bytes = {reinterpret_cast<uintptr_t>(pair->a.buffer), length, lkey};
  ibv_send_wr request = {};
  request.wr_id = 1;
  request.sg_list = &bytes;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(pair->a.qp, &request, &bad), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

// --- Device memory

void device_memory__as_a_dmabuf__has_the_same_bytes(void**) {
  assert_true(begin({}));
  ibv_alloc_dm_attr attr = {};
  attr.length = 6000;
  ibv_dm* dm = ibv_alloc_dm(pair->context, &attr);
  assert_non_null(dm);
  const bool is_possible = access("/dev/udmabuf", R_OK | W_OK) == 0;
  if (!is_possible && without_mistakes) skip();
  const int dmabuf = dm_export_dmabuf_fd(dm);
  if (!is_possible) {
    assert_int_equal(dmabuf, -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_free_dm(dm), 0);
    return;
  }
  assert_true(dmabuf >= 0);
  assert_int_equal(fcntl(dmabuf, F_GETFD), FD_CLOEXEC);
  // Through a region of the dma-buf a peer changes the device memory, which has whole pages.
  ibv_mr* mr = ibv_reg_dmabuf_mr(pair->pd, 0, 8192, 0, dmabuf, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  assert_non_null(mr);
  memset(pair->a.buffer, 'd', 64);
  write_from(pair->a.mr->lkey, 64, 4096, mr->rkey);
  char seen[64];
  assert_int_equal(ibv_memcpy_from_dm(seen, dm, 4096, sizeof seen), 0);
  assert_memory_equal(seen, pair->a.buffer, sizeof seen);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_free_dm(dm), 0);
  // The pages stay with the dma-buf.
  void* pages = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, dmabuf, 0);
  assert_ptr_not_equal(pages, MAP_FAILED);
  assert_memory_equal(static_cast<char*>(pages) + 4096, pair->a.buffer, 64);
  munmap(pages, 8192);
  close(dmabuf);
}

// --- DMA handles

constexpr uint32_t kTag = kDmaHandleCpu | kDmaHandleMemoryType;

int error_of_handle(DmaHandleInitAttr attr) {
  DmaHandle* handle = alloc_dmah(pair->context, &attr);
  if (handle == nullptr) return errno;
  assert_int_equal(dealloc_dmah(handle), 0);
  return 0;
}

void dma_handle__values__are_those_of_the_kernel(void**) {
  assert_true(begin({}));
  const auto cpu = static_cast<uint32_t>(sched_getcpu());
  assert_int_equal(error_of_handle({kDmaHandleHint, 0, 3, 0}), 0);
  assert_int_equal(error_of_handle({kDmaHandleHint | kTag, cpu, 0, kTphVolatile}), 0);
  assert_int_equal(error_of_handle({kDmaHandleHint | kTag, cpu, 1, kTphPersistent}), 0);
  if (without_mistakes) return;
  assert_int_equal(error_of_handle({kDmaHandleHint, 0, 4, 0}), EINVAL);
  assert_int_equal(error_of_handle({kTag, cpu, 0, kTphVolatile}), EINVAL);
  assert_int_equal(error_of_handle({kDmaHandleHint | kDmaHandleCpu, cpu, 0, 0}), EINVAL);
  assert_int_equal(error_of_handle({kDmaHandleHint | kDmaHandleMemoryType, 0, 0, 0}), EINVAL);
  assert_int_equal(error_of_handle({kDmaHandleHint | kTag, 0xFFFF, 0, kTphVolatile}), EINVAL);
  assert_int_equal(error_of_handle({kDmaHandleHint | kTag, cpu, 0, 0xFE}), EOPNOTSUPP);
  assert_int_equal(error_of_handle({kDmaHandleHint | 1u << 7, 0, 0, 0}), EOPNOTSUPP);
}

void dma_handle__of_a_region__is_used(void**) {
  assert_true(begin({}));
  DmaHandleInitAttr hint = {kDmaHandleHint, 0, 1, 0};
  DmaHandle* handle = alloc_dmah(pair->context, &hint);
  assert_non_null(handle);
  assert_ptr_equal(handle->context, pair->context);
  RegionInitAttr attr = {};
  attr.comp_mask = kRegionInitAddr | kRegionInitDmaHandle;
  attr.addr = pair->a.buffer;
  attr.length = kBufferSize;
  attr.access = IBV_ACCESS_LOCAL_WRITE;
  attr.dmah = handle;
  ibv_mr* mr = reg_mr_ex(pair->pd, &attr);
  assert_non_null(mr);
  if (!without_mistakes) {
    assert_int_equal(dealloc_dmah(handle), EBUSY);
    attr.access |= IBV_ACCESS_ON_DEMAND;
    assert_null(reg_mr_ex(pair->pd, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    attr.access = IBV_ACCESS_LOCAL_WRITE;
    attr.dmah = nullptr;
    assert_null(reg_mr_ex(pair->pd, &attr));
    assert_int_equal(errno, EINVAL);
  }
  // The bytes go through the new region.
  memset(pair->a.buffer, 'h', 100);
  write_from(mr->lkey, 100, reinterpret_cast<uintptr_t>(pair->b.buffer), pair->b.mr->rkey);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 100);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(dealloc_dmah(handle), 0);
}

// --- Completion counters

CompletionCounter* make_counter(CompletionCounterType type = kCountRequests) {
  CompletionCounterInitAttr attr = {0, type, 0};
  CompletionCounter* counter = create_comp_cntr(pair->context, &attr);
  assert_non_null(counter);
  return counter;
}

int attach(End& end, CompletionCounter* counter, uint32_t operations) {
  CompletionCounterAttachAttr attr = {0, operations};
  return qp_attach_comp_cntr(end.qp, counter, &attr);
}

uint64_t value_of(CompletionCounter* counter, bool of_errors = false) {
  uint64_t value = 0;
  assert_int_equal(of_errors ? read_err_comp_cntr(counter, &value) : read_comp_cntr(counter, &value), 0);
  return value;
}

// Waits by the counter alone.
void wait_for_count(CompletionCounter* counter, uint64_t value, bool of_errors = false) {
  const double end = now() + kPatience;
  while (value_of(counter, of_errors) < value && now() < end) sched_yield();
  assert_int_equal(value_of(counter, of_errors), value);
}

// A new queue pair in RESET.
bool renew(End& end, ibv_qp_type type) {
  if (ibv_destroy_qp(end.qp) != 0) return false;
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = end.cq;
  attr.qp_type = type;
  attr.cap = {kDepth, kDepth, 4, 4, 64};
  end.qp = ibv_create_qp(pair->pd, &attr);
  return end.qp != nullptr;
}

bool begin_in_reset(ibv_qp_type type = IBV_QPT_RC) {
  return begin({}) && renew(pair->a, type) && renew(pair->b, type);
}

bool connect_both() {
  return connect(pair->a.qp, pair->b.qp->qp_num) && connect(pair->b.qp, pair->a.qp->qp_num);
}

struct Counters {
  CompletionCounter *sends, *writes, *reads, *receives, *peers_writes, *peers_reads;
};

Counters attach_all(CompletionCounterType type) {
  const Counters made = {make_counter(type), make_counter(type), make_counter(type),
                         make_counter(type), make_counter(type), make_counter(type)};
  assert_int_equal(attach(pair->a, made.sends, kCountSends), 0);
  assert_int_equal(attach(pair->a, made.writes, kCountWrites), 0);
  assert_int_equal(attach(pair->a, made.reads, kCountReads), 0);
  assert_int_equal(attach(pair->b, made.receives, kCountReceives), 0);
  assert_int_equal(attach(pair->b, made.peers_writes, kCountPeersWrites), 0);
  assert_int_equal(attach(pair->b, made.peers_reads, kCountPeersReads), 0);
  return made;
}

// The queue pairs are gone.
void destroy(const Counters& counters) {
  for (CompletionCounter* each : {counters.sends, counters.writes, counters.reads, counters.receives,
                                  counters.peers_writes, counters.peers_reads})
    assert_int_equal(destroy_comp_cntr(each), 0);
}

void end_queue_pairs() {
  assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
  assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
  pair->a.qp = pair->b.qp = nullptr;
}

void counter_caps__all_operations(void**) {
  assert_true(begin({}));
  CompletionCounterCaps caps = {};
  assert_int_equal(query_caps(pair->context, &caps, sizeof caps), 0);
  assert_int_equal(caps.max_value, UINT64_MAX);
  assert_true(caps.max_counters >= 1024);
  assert_int_equal(caps.supported_qp_attach_ops, kCountedOperations);
  // A program of a later release, and one that asks for the first member alone.
  struct {
    CompletionCounterCaps known;
    uint64_t unknown = 1;
  } longer;
  assert_int_equal(query_caps(pair->context, &longer.known, sizeof longer), 0);
  assert_int_equal(longer.unknown, 0);
  uint64_t first[2] = {0, 7};
  assert_int_equal(query_caps(pair->context, reinterpret_cast<CompletionCounterCaps*>(first), sizeof first[0]), 0);
  assert_int_equal(first[0], UINT64_MAX);
  assert_int_equal(first[1], 7);
}

void counter__value__is_set_and_increased(void**) {
  assert_true(begin({}));
  CompletionCounter* counter = make_counter();
  assert_ptr_equal(counter->context, pair->context);
  assert_int_equal(value_of(counter), 0);
  assert_int_equal(set_comp_cntr(counter, UINT64_MAX), 0);
  assert_int_equal(inc_comp_cntr(counter, 3), 0);
  assert_int_equal(value_of(counter), 2);
  assert_int_equal(set_err_comp_cntr(counter, 5), 0);
  assert_int_equal(inc_err_comp_cntr(counter, 1), 0);
  assert_int_equal(value_of(counter, true), 6);
  assert_int_equal(value_of(counter), 2);
  assert_int_equal(destroy_comp_cntr(counter), 0);
}

void counter__mistakes__are_refused(void**) {
  if (without_mistakes) return;
  assert_true(begin_in_reset());
  CompletionCounterInitAttr wrong[] = {{1, kCountRequests, 0}, {0, kCountRequests, 1}, {0, 2, 0}};
  for (CompletionCounterInitAttr& attr : wrong) {
    assert_null(create_comp_cntr(pair->context, &attr));
    assert_int_equal(errno, attr.type == 2 ? ENOTSUP : EINVAL);
  }
  CompletionCounter* counter = make_counter();
  assert_int_equal(attach(pair->a, counter, 0), EINVAL);
  assert_int_equal(attach(pair->a, counter, 1 << 6), ENOTSUP);
  assert_int_equal(attach(pair->a, counter, kCountSends | kCountReads), 0);
  assert_int_equal(attach(pair->a, counter, kCountReads | kCountWrites), EBUSY);
  CompletionCounterAttachAttr unknown = {1, kCountSends};
  assert_int_equal(qp_attach_comp_cntr(pair->b.qp, counter, &unknown), EINVAL);
  assert_int_equal(destroy_comp_cntr(counter), EBUSY);
  assert_true(connect_both());
  assert_int_equal(attach(pair->a, counter, kCountWrites), EINVAL);
  assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
  pair->a.qp = nullptr;
  assert_int_equal(destroy_comp_cntr(counter), 0);
}

void exchange(unsigned flags) {
  memset(pair->a.buffer, 's', 300);
  memset(pair->b.buffer, 0, kBufferSize);
  for (uint64_t i = 0; i < 3; i++) assert_int_equal(post_receive(pair->b, 20 + i, 10000 + 1000 * i, 1000), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 100, nullptr, 0, flags), 0);
  assert_int_equal(post_send(pair->a, 2, IBV_WR_SEND_WITH_IMM, 0, 200, nullptr, 0, flags), 0);
  assert_int_equal(post_send(pair->a, 3, IBV_WR_RDMA_WRITE, 0, 300, &pair->b, 0, flags), 0);
  assert_int_equal(post_send(pair->a, 4, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 50, &pair->b, 4000, flags), 0);
}

void counters__requests__are_counted_without_completions(void**) {
  assert_true(begin_in_reset());
  const Counters counters = attach_all(kCountRequests);
  assert_true(connect_both());
  exchange(0);
  wait_for_count(counters.sends, 2);
  wait_for_count(counters.writes, 2);
  wait_for_count(counters.receives, 3);
  wait_for_count(counters.peers_writes, 2);
  // Their bytes are there.
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 300);
  assert_memory_equal(pair->b.buffer + 4000, pair->a.buffer, 50);
  assert_memory_equal(pair->b.buffer + 10000, pair->a.buffer, 100);
  assert_memory_equal(pair->b.buffer + 11000, pair->a.buffer, 200);
  memset(pair->b.buffer + 20000, 'r', 5000);
  assert_int_equal(post_send(pair->a, 5, IBV_WR_RDMA_READ, 30000, 5000, &pair->b, 20000, 0), 0);
  wait_for_count(counters.reads, 1);
  wait_for_count(counters.peers_reads, 1);
  assert_memory_equal(pair->a.buffer + 30000, pair->b.buffer + 20000, 5000);
  // On the wire these are several requests.
  assert_int_equal(post_send(pair->a, 6, IBV_WR_RDMA_READ, 0, kBufferSize, &pair->b, 0, 0), 0);
  wait_for_count(counters.reads, 2);
  wait_for_count(counters.peers_reads, 2);
  // No completion of the requests, and those of the receives as ever.
  ibv_wc completion = {};
  assert_int_equal(ibv_poll_cq(pair->a.cq, 1, &completion), 0);
  expect(pair->b.cq, 20, IBV_WC_SUCCESS, IBV_WC_RECV);
  expect(pair->b.cq, 21, IBV_WC_SUCCESS, IBV_WC_RECV);
  expect(pair->b.cq, 22, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
  assert_int_equal(value_of(counters.sends, true) + value_of(counters.receives, true), 0);
  end_queue_pairs();
  destroy(counters);
}

void counters__bytes__are_counted(void**) {
  assert_true(begin_in_reset());
  const Counters counters = attach_all(kCountBytes);
  assert_true(connect_both());
  exchange(IBV_SEND_SIGNALED);
  wait_for_count(counters.sends, 300);
  wait_for_count(counters.writes, 350);
  wait_for_count(counters.receives, 350);
  wait_for_count(counters.peers_writes, 350);
  assert_int_equal(post_send(pair->a, 5, IBV_WR_RDMA_READ, 30000, 5000, &pair->b, 20000, IBV_SEND_SIGNALED), 0);
  wait_for_count(counters.reads, 5000);
  wait_for_count(counters.peers_reads, 5000);
  for (uint64_t id = 1; id <= 5; id++) {
    ibv_wc completion = {};
    assert_true(wait_for(pair->a.cq, completion));
    assert_int_equal(completion.wr_id, id);
    assert_int_equal(completion.status, IBV_WC_SUCCESS);
  }
  end_queue_pairs();
  destroy(counters);
}

// Many small requests, at the rate of a program that counts instead of polling.
void counter__shared__counts_all_queue_pairs(void**) {
  constexpr uint64_t kRounds = 2000;
  assert_true(begin_in_reset());
  CompletionCounter* counter = make_counter();
  assert_int_equal(attach(pair->a, counter, kCountSends), 0);
  assert_int_equal(attach(pair->b, counter, kCountReceives), 0);
  assert_true(connect_both());
  for (uint64_t i = 0; i < kRounds; i++) {
    assert_int_equal(post_receive(pair->b, i, 64, 8), 0);
    assert_int_equal(post_send(pair->a, i, IBV_WR_SEND, 0, 8, nullptr, 0, 0), 0);
    wait_for_count(counter, 2 * (i + 1));
    ibv_wc completion = {};
    assert_int_equal(ibv_poll_cq(pair->b.cq, 1, &completion), 1);
  }
  end_queue_pairs();
  assert_int_equal(destroy_comp_cntr(counter), 0);
}

void counters__failed_requests__are_errors(void**) {
  if (without_mistakes) return;
  assert_true(begin_in_reset());
  const Counters counters = attach_all(kCountRequests);
  assert_true(connect_both());
  assert_int_equal(post_receive(pair->b, 9, 64, 8), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 8, &pair->b, kBufferSize, 0), 0);
  assert_int_equal(post_send(pair->a, 2, IBV_WR_SEND, 0, 8, nullptr, 0, 0), 0);
  wait_for_count(counters.writes, 1, true);
  wait_for_count(counters.sends, 1, true);
  wait_for_count(counters.peers_writes, 1, true);
  wait_for_count(counters.receives, 1, true);
  assert_int_equal(value_of(counters.writes) + value_of(counters.peers_writes), 0);
  end_queue_pairs();
  destroy(counters);
}

void counters__of_datagrams_and_unreliable_connections(void**) {
  assert_true(begin_in_reset(IBV_QPT_UC));
  CompletionCounter* sent = make_counter();
  CompletionCounter* written = make_counter(kCountBytes);
  assert_int_equal(attach(pair->a, sent, kCountSends | kCountWrites), 0);
  assert_int_equal(attach(pair->b, written, kCountPeersWrites), 0);
  assert_true(connect_both());
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 3000, &pair->b, 0, 0), 0);
  wait_for_count(sent, 1);
  wait_for_count(written, 3000);
  end_queue_pairs();
  assert_int_equal(destroy_comp_cntr(sent), 0);
  assert_int_equal(destroy_comp_cntr(written), 0);
}

void counter__of_an_xrc_queue_pair__is_left_with_it(void**) {
  assert_true(begin({}));
  ibv_xrcd* domain = open_domain(pair->context, -1, O_CREAT);
  assert_non_null(domain);
  ibv_qp* receiver = make_receiver(domain);
  assert_non_null(receiver);
  CompletionCounter* counter = make_counter();
  CompletionCounterAttachAttr attr = {0, kCountReceives};
  assert_int_equal(qp_attach_comp_cntr(receiver, counter, &attr), 0);
  if (!without_mistakes) assert_int_equal(destroy_comp_cntr(counter), EBUSY);
  assert_int_equal(ibv_destroy_qp(receiver), 0);
  assert_int_equal(destroy_comp_cntr(counter), 0);
  assert_int_equal(ibv_close_xrcd(domain), 0);
}

// IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS (1): not of aligned blocks either.
void data_in_order__no_part_of_a_message(void**) {
  assert_true(begin({}));
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ})
    assert_int_equal(ibv_query_qp_data_in_order(pair->a.qp, opcode, 1), 0);
}

}  // namespace

// Under dapple-run --check the device keeps the last 64 contexts.
void context__closed_a_hundred_times__is_gone_each_time(void**) {
  for (int i = 0; i < 100; i++) {
    ibv_context* context = open_loopback();
    assert_non_null(context);
    assert_int_equal(ibv_close_device(context), 0);
  }
}

int main(int argc, char** argv) {
  if (dlsym(RTLD_DEFAULT, "ibv_create_comp_cntr") == nullptr || dlsym(RTLD_DEFAULT, "ibv_alloc_dmah") == nullptr) {
    puts("SKIP: libibverbs has no completion counters");
    return 77;
  }
  without_mistakes = argc > 1 && strcmp(argv[1], "without-mistakes") == 0;
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(device_memory__as_a_dmabuf__has_the_same_bytes, finish),
      cmocka_unit_test_teardown(dma_handle__values__are_those_of_the_kernel, finish),
      cmocka_unit_test_teardown(dma_handle__of_a_region__is_used, finish),
      cmocka_unit_test_teardown(counter_caps__all_operations, finish),
      cmocka_unit_test_teardown(counter__value__is_set_and_increased, finish),
      cmocka_unit_test_teardown(counter__mistakes__are_refused, finish),
      cmocka_unit_test_teardown(counters__requests__are_counted_without_completions, finish),
      cmocka_unit_test_teardown(counters__bytes__are_counted, finish),
      cmocka_unit_test_teardown(counter__shared__counts_all_queue_pairs, finish),
      cmocka_unit_test_teardown(counters__failed_requests__are_errors, finish),
      cmocka_unit_test_teardown(counter__of_an_xrc_queue_pair__is_left_with_it, finish),
      cmocka_unit_test_teardown(counters__of_datagrams_and_unreliable_connections, finish),
      cmocka_unit_test_teardown(data_in_order__no_part_of_a_message, finish),
      cmocka_unit_test(context__closed_a_hundred_times__is_gone_each_time),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  printf("%d failed\n", failed);
  return failed;
}

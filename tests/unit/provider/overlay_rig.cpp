// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/provider/overlay_rig.hpp"

#include <errno.h>

namespace dapple::provider {

Provider provider;
FakeContext* fake;
ibv_pd pd;
alignas(64) char memory[4096];
const char* why;
Cpu cpu;
size_t bad_segment;

namespace {

ibv_mr* make_mr(ibv_pd* of) {
  if (provider.error != 0) {
    errno = provider.error;
    return nullptr;
  }
  auto* mr = new ibv_mr();
  mr->context = of->context;
  mr->pd = of;
  mr->lkey = provider.next_lkey++;
  provider.mr = mr;
  return mr;
}

ibv_mr* provider_reg_mr(ibv_pd* of, void* address, size_t length, uint64_t iova, int access) {
  provider.pd = of;
  provider.told = {address, length, iova, access};
  return make_mr(of);
}

ibv_mr* provider_reg_mr_ex(ibv_pd* of, RegionInitAttr* attr) {
  const bool has_iova = (attr->comp_mask & kRegionInitIova) != 0;
  provider.pd = of;
  provider.told = {attr->addr, attr->length, has_iova ? attr->iova : reinterpret_cast<uintptr_t>(attr->addr),
                   attr->access};
  return make_mr(of);
}

ibv_mr* provider_alloc_null_mr(ibv_pd* of) {
  return make_mr(of);
}

ibv_mr* provider_reg_dm_mr(ibv_pd* of, ibv_dm*, uint64_t, size_t, unsigned) {
  return make_mr(of);
}

ibv_mr* provider_reg_dmabuf_mr(ibv_pd* of, uint64_t, size_t length, uint64_t iova, int, int access) {
  provider.told = {nullptr, length, iova, access};
  return make_mr(of);
}

int provider_rereg_mr(ibv_mr* mr, int, ibv_pd*, void* address, size_t length, int access) {
  ++provider.num_reregistered;
  if (provider.error != 0) return provider.error;
  provider.told = {address, length, 0, access};
  mr->lkey = provider.next_lkey++;
  return 0;
}

int provider_dereg_mr(ibv_mr* mr) {
  if (provider.error != 0) return provider.error;
  ++provider.num_deregistered;
  delete mr;
  return 0;
}

void provider_free_context(ibv_context*) {
  ++provider.num_closed;
}

}  // namespace

ibv_mr* reg_mr(void* address, size_t length, uint64_t iova) {
  return reinterpret_cast<RegMr>(fake->operation(Operation::reg_mr))(&pd, address, length, iova, kAccess);
}
ibv_mr* reg_mr_ex(RegionInitAttr* attr) {
  return reinterpret_cast<RegMrEx>(fake->operation(Operation::reg_mr_ex))(&pd, attr);
}
ibv_mr* alloc_null_mr() {
  return reinterpret_cast<AllocNullMr>(fake->operation(Operation::alloc_null_mr))(&pd);
}
ibv_mr* reg_dm_mr(uint64_t offset, size_t length) {
  return reinterpret_cast<RegDmMr>(fake->operation(Operation::reg_dm_mr))(&pd, nullptr, offset, length, kAccess);
}
ibv_mr* reg_dmabuf_mr(uint64_t offset, size_t length, uint64_t iova, int fd) {
  return reinterpret_cast<RegDmabufMr>(fake->operation(Operation::reg_dmabuf_mr))(&pd, offset, length, iova, fd,
                                                                                  kAccess);
}
int rereg_mr(ibv_mr* mr, int flags, void* address, size_t length, int access) {
  return reinterpret_cast<ReregMr>(fake->operation(Operation::rereg_mr))(mr, flags, &pd, address, length, access);
}
int dereg_mr(ibv_mr* mr) {
  return reinterpret_cast<DeregMr>(fake->operation(Operation::dereg_mr))(mr);
}
void close_context() {
  reinterpret_cast<FreeContext>(fake->operation(Operation::free_context))(fake->context);
}

void open_context(const Layout& layout) {
  provider = {};
  provider.next_lkey = 0x100;
  fake = new FakeContext(layout);
  fake->set_operation(Operation::reg_mr, provider_reg_mr);
  if (layout.index(Operation::reg_mr_ex) >= 0) fake->set_operation(Operation::reg_mr_ex, provider_reg_mr_ex);
  fake->set_operation(Operation::alloc_null_mr, provider_alloc_null_mr);
  fake->set_operation(Operation::reg_dm_mr, provider_reg_dm_mr);
  fake->set_operation(Operation::reg_dmabuf_mr, provider_reg_dmabuf_mr);
  fake->set_operation(Operation::rereg_mr, provider_rereg_mr);
  fake->set_operation(Operation::dereg_mr, provider_dereg_mr);
  fake->set_operation(Operation::free_context, provider_free_context);
  fake->publish();
  pd.context = fake->context;
}

int attach_it(dappledv_coherence coherence, RegionPolicy* policy, uint64_t flags) {
  AttachRequest request = {};
  request.context = fake->context;
  request.flags = flags;
  request.attr.coherence = coherence;
  request.attr.sync_supported = 1;
  request.policy = policy;
  request.library = fake->library;
  why = nullptr;
  return attach(request, &why);
}

void open_attached(const Layout& layout, dappledv_coherence coherence, RegionPolicy* policy) {
  open_context(layout);
  assert_int_equal(attach_it(coherence, policy), 0);
}

void end_context() {
  close_context();
  assert_int_equal(provider.num_closed, 1);
  delete fake;
  fake = nullptr;
}

namespace {

void clean(uint32_t, const void* address, size_t length) noexcept {
  ++cpu.num_cleaned;
  cpu.last = address;
  cpu.bytes += length;
}
void clean_invalidate(uint32_t, const void* address, size_t length) noexcept {
  ++cpu.num_invalidated;
  cpu.last = address;
  cpu.bytes += length;
}
void wait_for_it() noexcept {
  ++cpu.num_waits;
}
void order() noexcept {
  ++cpu.num_orderings;
}
void nothing() noexcept {}

constexpr dapple::coherence::BackEnd kBackEnd = {
    .cpu = {"fake", true, true, "c", "ci", "w", 64, 64},
    .clean_range = clean,
    .clean_invalidate_range = clean_invalidate,
    .persist_range = nullptr,
    .complete_maintenance = wait_for_it,
    .complete_persistence = nothing,
    .order_before_maintenance = nothing,
    .order_before_device_reads = order,
    .order_after_device_writes = order,
    .full_barrier = nothing,
};

}  // namespace

int sync_device(const ibv_sge* segments, size_t count) {
  cpu = {};
  bad_segment = kNoSegment;
  return sync_regions(kBackEnd, SyncDirection::kForDevice, fake->context, segments, count, &bad_segment);
}
int sync_cpu(const ibv_sge* segments, size_t count) {
  cpu = {};
  bad_segment = kNoSegment;
  return sync_regions(kBackEnd, SyncDirection::kForCpu, fake->context, segments, count, &bad_segment);
}

uint64_t at(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

}  // namespace dapple::provider

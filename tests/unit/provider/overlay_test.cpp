// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The overlay over contexts of every known layout, with a provider that writes down what it is asked.
#include "provider/overlay/overlay.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "provider/private_api/operation_types.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/fake_context.hpp"

using namespace dapple::provider;

namespace {

// The provider. What it was asked last, and what it will answer.
struct Provider {
  RegionRequest told;
  ibv_pd* pd;
  ibv_mr* mr;
  uint32_t next_lkey;
  int error;
  int num_deregistered;
  int num_reregistered;
  int num_closed;
} provider;

FakeContext* fake;
ibv_pd pd;
alignas(64) char memory[4096];
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;

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

// What libibverbs does.
ibv_mr* reg_mr(void* address, size_t length, uint64_t iova) {
  return reinterpret_cast<RegMr>(fake->operation(Operation::reg_mr))(&pd, address, length, iova, kAccess);
}
ibv_mr* reg_mr_ex(RegionInitAttr* attr) {
  return reinterpret_cast<RegMrEx>(fake->operation(Operation::reg_mr_ex))(&pd, attr);
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
  fake->set_operation(Operation::rereg_mr, provider_rereg_mr);
  fake->set_operation(Operation::dereg_mr, provider_dereg_mr);
  fake->set_operation(Operation::free_context, provider_free_context);
  fake->publish();
  pd.context = fake->context;
}

const char* why;

int attach_it(dappledv_coherence coherence, RegionPolicy* policy, uint64_t flags = 0) {
  AttachRequest request = {};
  request.context = fake->context;
  request.flags = flags;
  request.attr.coherence = coherence;
  request.attr.sync_supported = 1;
  request.policy = policy;
  request.library = &fake->library;
  why = nullptr;
  return attach(request, &why);
}

void open_attached(const Layout& layout, dappledv_coherence coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
                   RegionPolicy* policy = nullptr) {
  open_context(layout);
  assert_int_equal(attach_it(coherence, policy), 0);
}

void end_context() {
  close_context();
  assert_int_equal(provider.num_closed, 1);
  delete fake;
  fake = nullptr;
}

// The CPU. What was maintained.
struct Cpu {
  int num_cleaned;
  int num_invalidated;
  int num_waits;
  int num_orderings;
  const void* last;
  size_t bytes;
} cpu;

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

int sync_device(const ibv_sge* segments, size_t count) {
  cpu = {};
  return sync_regions(kBackEnd, SyncDirection::kForDevice, fake->context, segments, count);
}
int sync_cpu(const ibv_sge* segments, size_t count) {
  cpu = {};
  return sync_regions(kBackEnd, SyncDirection::kForCpu, fake->context, segments, count);
}

uint64_t at(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

void attach__replaces_regions_and_closing_only(void**) {
  for (const Layout& layout : kLayouts) {
    open_context(layout);
    AnyFunction before[kMaxOperations];
    for (size_t i = 0; i < layout.num_operations; ++i) before[i] = fake->entry(i);
    const ibv_context_ops public_before = fake->context->ops;
    assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
    size_t changed = 0;
    for (size_t i = 0; i < layout.num_operations; ++i) changed += fake->entry(i) != before[i];
    assert_int_equal(changed, layout.index(Operation::reg_mr_ex) < 0 ? 4 : 5);
    const ibv_context_ops& ops = fake->context->ops;
    assert_ptr_equal(ops.poll_cq, public_before.poll_cq);
    assert_ptr_equal(ops.post_send, public_before.post_send);
    assert_ptr_equal(ops.post_recv, public_before.post_recv);
    assert_ptr_equal(ops.post_srq_recv, public_before.post_srq_recv);
    assert_ptr_equal(ops.req_notify_cq, public_before.req_notify_cq);
    close_context();
    // Everything is as it was.
    for (size_t i = 0; i < layout.num_operations; ++i) assert_ptr_equal(fake->entry(i), before[i]);
    assert_int_equal(provider.num_closed, 1);
    delete fake;
  }
}

void attach__again_does_nothing(void**) {
  open_attached(kLayouts[0]);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
  assert_int_equal(fake->num_sets, 1);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr, 1), EBUSY);
  assert_int_equal(fake->num_sets, 1);
  end_context();
}

void attach__refusal_changes_nothing(void**) {
  open_context(kLayouts[0]);
  fake->set_entry(3, nullptr);
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), EOPNOTSUPP);
  assert_non_null(why);
  assert_int_equal(fake->num_sets, 0);
  assert_int_equal(sync_device(nullptr, 0), EOPNOTSUPP);
  end_context();
}

void attach__contexts_are_apart(void**) {
  open_attached(kLayouts[0]);
  FakeContext* first = fake;
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  const Provider kept = provider;
  open_attached(kLayouts[5]);
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  end_context();
  fake = first;
  FakeContext::current = first;
  provider = kept;
  pd.context = first->context;
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void reg_mr__passed_on_as_it_is(void**) {
  for (const Layout& layout : kLayouts) {
    open_attached(layout);
    ibv_mr* mr = reg_mr(memory, 100, 0x7000);
    assert_ptr_equal(mr, provider.mr);
    assert_ptr_equal(provider.pd, &pd);
    assert_ptr_equal(provider.told.address, memory);
    assert_int_equal(provider.told.length, 100);
    assert_int_equal(provider.told.iova, 0x7000);
    assert_int_equal(provider.told.access, kAccess);
    const ibv_sge segment = {0x7000 + 64, 36, mr->lkey};
    assert_int_equal(sync_device(&segment, 1), 0);
    assert_ptr_equal(cpu.last, memory + 64);
    assert_int_equal(cpu.bytes, 36);
    const uint32_t lkey = mr->lkey;
    assert_int_equal(dereg_mr(mr), 0);
    assert_int_equal(provider.num_deregistered, 1);
    const ibv_sge gone = {0x7000, 1, lkey};
    assert_int_equal(sync_device(&gone, 1), EINVAL);
    end_context();
  }
}

void reg_mr__providers_failure_is_the_callers(void**) {
  open_attached(kLayouts[0]);
  provider.error = EFAULT;
  errno = 0;
  assert_null(reg_mr(memory, 100, at(memory)));
  assert_int_equal(errno, EFAULT);
  end_context();
}

void reg_mr_ex__memory_of_the_program_is_known(void**) {
  open_attached(kLayouts[4]);
  RegionInitAttr attr = {256, kAccess, kRegionInitAddr, 0, memory, 0};
  ibv_mr* mr = reg_mr_ex(&attr);
  assert_non_null(mr);
  assert_int_equal(provider.told.iova, at(memory));
  assert_int_equal(attr.comp_mask, kRegionInitAddr);
  const ibv_sge segment = {at(memory), 256, mr->lkey};
  assert_int_equal(sync_cpu(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);

  attr = {256, kAccess, kRegionInitAddr | kRegionInitIova, 0, memory, 0};
  mr = reg_mr_ex(&attr);
  const ibv_sge zero_based = {128, 128, mr->lkey};
  assert_int_equal(sync_cpu(&zero_based, 1), 0);
  assert_ptr_equal(cpu.last, memory + 128);
  assert_int_equal(dereg_mr(mr), 0);

  attr = {256, kAccess, kRegionInitFd, 0, nullptr, 7};
  mr = reg_mr_ex(&attr);
  const ibv_sge not_ours = {0, 1, mr->lkey};
  assert_int_equal(sync_cpu(&not_ours, 1), EINVAL);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void rereg_mr__region_moves(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, 0);
  const uint32_t old_lkey = mr->lkey;
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, memory + 1024, 128, 0), 0);
  assert_int_not_equal(mr->lkey, old_lkey);
  const ibv_sge old_segment = {0, 64, old_lkey};
  assert_int_equal(sync_device(&old_segment, 1), EINVAL);
  const ibv_sge segment = {at(memory + 1024), 128, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_ptr_equal(cpu.last, memory + 1024);

  provider.error = ENOMEM;
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, memory, 64, 0), ENOMEM);
  provider.error = 0;
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void dereg_mr__that_fails_keeps_the_region(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  provider.error = EBUSY;
  assert_int_equal(dereg_mr(mr), EBUSY);
  assert_int_equal(sync_device(&segment, 1), 0);
  provider.error = 0;
  assert_int_equal(dereg_mr(mr), 0);
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  end_context();
}

void attach__late_leaves_older_regions_alone(void**) {
  open_context(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  ibv_mr* other = reg_mr(memory, 64, at(memory));
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr), 0);
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, kAccess), 0);
  assert_int_equal(provider.num_reregistered, 1);
  assert_int_equal(dereg_mr(mr), 0);
  assert_int_equal(dereg_mr(other), 0);
  assert_int_equal(provider.num_deregistered, 2);
  end_context();
}

void free_context__regions_that_are_left_are_forgotten(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  close_context();
  assert_int_equal(provider.num_closed, 1);
  assert_int_equal(sync_device(nullptr, 0), EOPNOTSUPP);
  delete mr;
  // The next context may have the same address.
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_COHERENT, nullptr), 0);
  const ibv_sge segment = {at(memory), 64, 0x100};
  assert_int_equal(sync_device(&segment, 1), EINVAL);
  provider.num_closed = 0;
  end_context();
}

void sync__one_bad_segment_and_nothing_is_synced(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 256, at(memory));
  const ibv_sge good = {at(memory), 64, mr->lkey};
  const ibv_sge bad[] = {
      {at(memory) - 1, 2, mr->lkey},           {at(memory), 257, mr->lkey},
      {at(memory) + 256, 1, mr->lkey},         {UINT64_MAX, 2, mr->lkey},
      {at(memory) + 64, UINT32_MAX, mr->lkey}, {at(memory), 64, mr->lkey + 1},
      {at(memory) + 257, 0, mr->lkey},
  };
  for (const ibv_sge& segment : bad) {
    const ibv_sge list[] = {good, segment, good};
    assert_int_equal(sync_device(list, 3), EINVAL);
    assert_int_equal(sync_cpu(list, 3), EINVAL);
    assert_int_equal(cpu.num_cleaned + cpu.num_invalidated + cpu.num_waits, 0);
  }
  assert_int_equal(sync_device(nullptr, 1), EINVAL);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void sync__more_segments_than_a_batch(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, sizeof(memory), at(memory));
  static ibv_sge list[200];
  for (size_t i = 0; i < 200; ++i) list[i] = {at(memory + i), 3, mr->lkey};
  assert_int_equal(sync_device(list, 200), 0);
  assert_int_equal(cpu.num_cleaned, 200);
  assert_int_equal(cpu.num_invalidated, 0);
  assert_true(cpu.num_waits >= 1);
  assert_int_equal(sync_cpu(list, 200), 0);
  assert_int_equal(cpu.num_invalidated, 200);
  assert_int_equal(cpu.bytes, 600);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

void sync__coherent_device_checks_and_orders_only(void**) {
  open_attached(kLayouts[0], DAPPLEDV_COHERENCE_COHERENT);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  const ibv_sge beyond = {at(memory), 65, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(cpu.num_orderings, 1);
  assert_int_equal(cpu.num_cleaned + cpu.num_waits, 0);
  assert_int_equal(sync_cpu(&segment, 1), 0);
  assert_int_equal(cpu.num_orderings, 1);
  assert_int_equal(sync_cpu(&beyond, 1), EINVAL);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

// A policy that gives the device other memory, under the program's address.
class Substitute final : public RegionPolicy {
 public:
  int before_registration(RegionRequest& request, void** state) override {
    if (refuse != 0) return refuse;
    request.address = memory + 2048;
    *state = this;
    ++alive;
    return 0;
  }
  void registration_failed(void* state) override {
    assert_ptr_equal(state, this);
    --alive;
  }
  int before_reregistration(int, int, void* state) override {
    assert_ptr_equal(state, this);
    return refuse;
  }
  void deregistered(void* state) override {
    assert_ptr_equal(state, this);
    --alive;
  }

  int refuse = 0;
  int alive = 0;
};

void policy__substitutes_address_and_keeps_the_programs(void**) {
  for (const Layout& layout : kLayouts) {
    static Substitute policy;
    open_attached(layout, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, &policy);
    ibv_mr* mr = reg_mr(memory, 64, at(memory));
    assert_ptr_equal(provider.told.address, memory + 2048);
    assert_int_equal(provider.told.iova, at(memory));
    const ibv_sge segment = {at(memory), 64, mr->lkey};
    assert_int_equal(sync_device(&segment, 1), 0);
    assert_ptr_equal(cpu.last, memory);
    assert_int_equal(dereg_mr(mr), 0);
    assert_int_equal(policy.alive, 0);

    if (layout.index(Operation::reg_mr_ex) >= 0) {
      RegionInitAttr attr = {64, kAccess, kRegionInitAddr, 99, memory, 0};
      mr = reg_mr_ex(&attr);
      assert_ptr_equal(provider.told.address, memory + 2048);
      assert_int_equal(provider.told.iova, at(memory));
      assert_ptr_equal(attr.addr, memory);
      assert_int_equal(attr.iova, 99);
      assert_int_equal(attr.comp_mask, kRegionInitAddr);
      assert_int_equal(dereg_mr(mr), 0);
    }

    // One that is left when the context goes.
    mr = reg_mr(memory, 64, at(memory));
    end_context();
    delete mr;
    assert_int_equal(policy.alive, 0);
  }
}

void policy__refuses(void**) {
  static Substitute policy;
  open_attached(kLayouts[0], DAPPLEDV_COHERENCE_NONCOHERENT_CPU, &policy);
  policy.refuse = EOPNOTSUPP;
  provider.told = {};
  assert_null(reg_mr(memory, 64, at(memory)));
  assert_int_equal(errno, EOPNOTSUPP);
  assert_null(provider.told.address);

  policy.refuse = 0;
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  policy.refuse = EOPNOTSUPP;
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, memory, 32, 0), EOPNOTSUPP);
  assert_int_equal(provider.num_reregistered, 0);
  policy.refuse = 0;
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);

  provider.error = EINVAL;
  assert_null(reg_mr(memory, 64, at(memory)));
  provider.error = 0;
  assert_int_equal(policy.alive, 0);
  end_context();
}

void fork__child_has_the_overlay(void**) {
  open_attached(kLayouts[0]);
  ibv_mr* mr = reg_mr(memory, 64, at(memory));
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  const pid_t child = fork();
  if (child == 0) {
    // Reading, writing, closing: a lock left held would hang, and the alarm end it.
    alarm(10);
    const bool right = sync_device(&segment, 1) == 0 && dereg_mr(mr) == 0 && sync_device(&segment, 1) == EINVAL;
    close_context();
    _exit(right ? 0 : 1);
  }
  assert_true(child > 0);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);
  end_context();
}

// A provider that may be called by many threads.
std::atomic<uint32_t> next_lkey;

ibv_mr* threads_reg_mr(ibv_pd* of, void*, size_t, uint64_t, int) {
  auto* mr = new ibv_mr();
  mr->context = of->context;
  mr->lkey = ++next_lkey;
  return mr;
}

int threads_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}

std::atomic<bool> forked;

void* register_and_sync(void* failures) {
  for (int i = 0; i < 500 || !forked; ++i) {
    ibv_mr* mr = reg_mr(memory, sizeof(memory), at(memory));
    const ibv_sge segment = {at(memory) + 64, 64, mr->lkey};
    if (sync_regions(dapple::coherence::cpu_back_end(), SyncDirection::kForCpu, fake->context, &segment, 1) != 0 ||
        dereg_mr(mr) != 0) {
      *static_cast<int*>(failures) = i + 1;
    }
  }
  return nullptr;
}

void threads__register_and_sync_at_once(void**) {
  constexpr size_t kThreads = 4;
  pthread_t threads[kThreads];
  int failures[kThreads] = {};
  forked = false;
  open_context(kLayouts[0]);
  fake->set_operation(Operation::reg_mr, threads_reg_mr);
  fake->set_operation(Operation::dereg_mr, threads_dereg_mr);
  fake->publish();
  assert_int_equal(attach_it(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr), 0);
  for (size_t i = 0; i < kThreads; ++i) {
    assert_int_equal(pthread_create(&threads[i], nullptr, register_and_sync, &failures[i]), 0);
  }
  // A fork in between finds the lock in order, on both sides.
  const pid_t child = fork();
  forked = true;
  if (child == 0) {
    alarm(10);
    int failed = 0;
    register_and_sync(&failed);
    _exit(failed);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  for (size_t i = 0; i < kThreads; ++i) {
    assert_int_equal(pthread_join(threads[i], nullptr), 0);
    assert_int_equal(failures[i], 0);
  }
  end_context();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(attach__replaces_regions_and_closing_only),
      cmocka_unit_test(attach__again_does_nothing),
      cmocka_unit_test(attach__refusal_changes_nothing),
      cmocka_unit_test(attach__contexts_are_apart),
      cmocka_unit_test(attach__late_leaves_older_regions_alone),
      cmocka_unit_test(reg_mr__passed_on_as_it_is),
      cmocka_unit_test(reg_mr__providers_failure_is_the_callers),
      cmocka_unit_test(reg_mr_ex__memory_of_the_program_is_known),
      cmocka_unit_test(rereg_mr__region_moves),
      cmocka_unit_test(dereg_mr__that_fails_keeps_the_region),
      cmocka_unit_test(free_context__regions_that_are_left_are_forgotten),
      cmocka_unit_test(sync__one_bad_segment_and_nothing_is_synced),
      cmocka_unit_test(sync__more_segments_than_a_batch),
      cmocka_unit_test(sync__coherent_device_checks_and_orders_only),
      cmocka_unit_test(policy__substitutes_address_and_keeps_the_programs),
      cmocka_unit_test(policy__refuses),
      cmocka_unit_test(fork__child_has_the_overlay),
      cmocka_unit_test(threads__register_and_sync_at_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

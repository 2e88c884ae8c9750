// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions that the overlay registers: the requests to the provider, the changes that a policy may make, and syncs.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/provider/overlay_rig.hpp"

using namespace dapple::provider;

namespace {

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
  RegionInitAttr attr = {256, kAccess, kRegionInitAddr, 0, memory, 0, 0, nullptr};
  ibv_mr* mr = reg_mr_ex(&attr);
  assert_non_null(mr);
  assert_int_equal(provider.told.iova, at(memory));
  assert_int_equal(attr.comp_mask, kRegionInitAddr);
  const ibv_sge segment = {at(memory), 256, mr->lkey};
  assert_int_equal(sync_cpu(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);

  attr = {256, kAccess, kRegionInitAddr | kRegionInitIova, 0, memory, 0, 0, nullptr};
  mr = reg_mr_ex(&attr);
  const ibv_sge zero_based = {128, 128, mr->lkey};
  assert_int_equal(sync_cpu(&zero_based, 1), 0);
  assert_ptr_equal(cpu.last, memory + 128);
  assert_int_equal(dereg_mr(mr), 0);

  end_context();
}

// Memory that no instruction of this CPU maintains is in one list with memory that needs it.
void elsewhere__is_checked_and_left_alone(void**) {
  for (const Layout& layout : kLayouts) {
    open_attached(layout);
    ibv_mr* mr = reg_mr(memory, 100, at(memory));
    ibv_mr* null_mr = alloc_null_mr();
    ibv_mr* dm_mr = reg_dm_mr(4096, 256);
    const ibv_sge segments[] = {
        {0x123456789, 4096, null_mr->lkey}, {192, 64, dm_mr->lkey}, {at(memory), 100, mr->lkey}};
    assert_int_equal(sync_device(segments, 3), 0);
    assert_int_equal(cpu.bytes, 100);
    assert_int_equal(sync_cpu(segments, 3), 0);
    assert_int_equal(cpu.bytes, 100);
    const ibv_sge beyond[] = {{at(memory), 100, mr->lkey}, {193, 64, dm_mr->lkey}};
    assert_int_equal(sync_device(beyond, 2), EINVAL);
    assert_int_equal(bad_segment, 1);
    const ibv_sge gone = {0, 1, dm_mr->lkey};
    assert_int_equal(dereg_mr(dm_mr), 0);
    assert_int_equal(sync_device(&gone, 1), EINVAL);
    assert_int_equal(dereg_mr(null_mr), 0);
    assert_int_equal(dereg_mr(mr), 0);
    end_context();
  }
}

// The kernel gets a descriptor of our own, and answers that this file is no dma-buf.
void dmabuf__is_the_kernels_to_maintain(void**) {
  open_attached(kLayouts[4]);
  const int file = memfd_create("dmabuf", 0);
  ibv_mr* mr = reg_dmabuf_mr(0, 256, 0x7000, file);
  assert_int_equal(provider.told.iova, 0x7000);
  RegionInitAttr attr = {256, kAccess, kRegionInitFd, 0, nullptr, file, 0, nullptr};
  ibv_mr* other = reg_mr_ex(&attr);
  close(file);
  for (const ibv_sge& segment : {ibv_sge{0x7000, 256, mr->lkey}, ibv_sge{0, 256, other->lkey}}) {
    assert_int_equal(sync_device(&segment, 1), ENOTTY);
    assert_int_equal(cpu.bytes, 0);
    const ibv_sge beyond = {segment.addr + 1, 256, segment.lkey};
    assert_int_equal(sync_device(&beyond, 1), EINVAL);
  }
  assert_int_equal(dereg_mr(mr), 0);
  assert_int_equal(dereg_mr(other), 0);
  // No descriptor is left open.
  const int next = memfd_create("next", 0);
  assert_int_equal(next, file);
  close(next);
  errno = 0;
  assert_null(reg_dmabuf_mr(0, 256, 0, 1 << 20));
  assert_int_equal(errno, EBADF);
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
    assert_int_equal(bad_segment, 1);
    assert_int_equal(sync_cpu(list, 3), EINVAL);
    assert_int_equal(bad_segment, 1);
    assert_int_equal(cpu.num_cleaned + cpu.num_invalidated + cpu.num_waits, 0);
  }
  assert_int_equal(sync_device(nullptr, 1), EINVAL);
  assert_int_equal(bad_segment, kNoSegment);
  assert_int_equal(
      sync_regions(dapple::coherence::cpu_back_end(), SyncDirection::kForCpu, fake->context, &bad[0], 1, nullptr),
      EINVAL);
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
  void registered(void* state) override {
    assert_ptr_equal(state, this);
    ++num_registered;
  }
  void registration_failed(void* state) override {
    assert_ptr_equal(state, this);
    --alive;
  }
  int before_reregistration(int, int, void* state) override {
    assert_ptr_equal(state, this);
    return refuse;
  }
  void access_changed(int now, void* state) override {
    assert_ptr_equal(state, this);
    access = now;
  }
  void deregistered(void* state) override {
    assert_ptr_equal(state, this);
    --alive;
  }

  int refuse = 0;
  int alive = 0;
  int num_registered = 0;
  int access = -1;
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
      RegionInitAttr attr = {64, kAccess, kRegionInitAddr, 99, memory, 0, 0, nullptr};
      mr = reg_mr_ex(&attr);
      assert_ptr_equal(provider.told.address, memory + 2048);
      assert_int_equal(provider.told.iova, at(memory));
      assert_ptr_equal(attr.addr, memory);
      assert_int_equal(attr.iova, 99);
      assert_int_equal(attr.comp_mask, kRegionInitAddr);
      assert_int_equal(dereg_mr(mr), 0);
    }

    // A region that is left when the context is closed.
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
  provider.error = EINVAL;
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_READ), EINVAL);
  assert_int_equal(policy.access, -1);
  provider.error = 0;
  assert_int_equal(rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_READ), 0);
  assert_int_equal(policy.access, IBV_ACCESS_REMOTE_READ);
  const ibv_sge segment = {at(memory), 64, mr->lkey};
  assert_int_equal(sync_device(&segment, 1), 0);
  assert_int_equal(dereg_mr(mr), 0);

  provider.error = EINVAL;
  assert_null(reg_mr(memory, 64, at(memory)));
  provider.error = 0;
  assert_int_equal(policy.alive, 0);
  assert_int_equal(policy.num_registered, 1);
  end_context();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(reg_mr__passed_on_as_it_is),
      cmocka_unit_test(reg_mr__providers_failure_is_the_callers),
      cmocka_unit_test(reg_mr_ex__memory_of_the_program_is_known),
      cmocka_unit_test(elsewhere__is_checked_and_left_alone),
      cmocka_unit_test(dmabuf__is_the_kernels_to_maintain),
      cmocka_unit_test(rereg_mr__region_moves),
      cmocka_unit_test(dereg_mr__that_fails_keeps_the_region),
      cmocka_unit_test(sync__one_bad_segment_and_nothing_is_synced),
      cmocka_unit_test(sync__more_segments_than_a_batch),
      cmocka_unit_test(sync__coherent_device_checks_and_orders_only),
      cmocka_unit_test(policy__substitutes_address_and_keeps_the_programs),
      cmocka_unit_test(policy__refuses),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

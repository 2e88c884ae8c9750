// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/region.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>
#include <optional>

#include "provider/device/decision.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;
using dapple::coherence::CpuDescription;
using dapple::coherence::PersistenceDomain;

namespace {

constexpr CpuDescription kCapable = {"test", true, true, "wash", "wash out", "wait", 64, 128, true, "hang out"};
constexpr CpuDescription kIncapable = {"test", false, false, "none", "none", "none", 64, 128};

dappledv_device_attr device_of(dappledv_coherence coherence) {
  dappledv_device_attr device = {};
  fill_coherence({coherence, DAPPLEDV_REASON_ARCHITECTURE, "because"}, kCapable, device);
  return device;
}

dappledv_region_attr region_of(dappledv_coherence coherence) {
  const dappledv_device_attr device = device_of(coherence);
  dappledv_region_attr region;
  assert_int_equal(init_region(&device, &region), 0);
  return region;
}

void init_region__is_as_the_device(void**) {
  for (dappledv_coherence coherence : {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_IO,
                                       DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_COHERENCE_BOUNCED}) {
    const dappledv_device_attr device = device_of(coherence);
    dappledv_region_attr region;
    memset(&region, 0xa5, sizeof(region));
    assert_int_equal(init_region(&device, &region), 0);
    assert_int_equal(region.comp_mask, 0);
    assert_int_equal(region.coherence, coherence);
    assert_int_equal(region.reason, DAPPLEDV_REASON_ARCHITECTURE);
    assert_int_equal(region.certainty, DAPPLEDV_CERTAINTY_ARCHITECTURE);
    assert_int_equal(region.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
    assert_int_equal(region.sync_for_device_required, device.sync_for_device_required);
    assert_int_equal(region.sync_for_cpu_required, device.sync_for_cpu_required);
    assert_int_equal(region.sync_supported, device.sync_supported);
    assert_int_equal(region.sync_complete, device.sync_complete);
    assert_int_equal(region.dmabuf, 0);
    assert_string_equal(region.explanation, "because");
  }
  dappledv_region_attr region;
  const dappledv_device_attr device = {};
  assert_int_equal(init_region(nullptr, &region), EINVAL);
  assert_int_equal(init_region(&device, nullptr), EINVAL);
}

void override_region__what_follows(void**) {
  for (dappledv_coherence said :
       {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_NONCOHERENT_IO}) {
    dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_COHERENT);
    region.persistence = DAPPLEDV_PERSISTENCE_CPU_CACHES;
    assert_int_equal(override_region(kCapable, &region, said), 0);
    assert_int_equal(region.coherence, said);
    assert_int_equal(region.reason, DAPPLEDV_REASON_OVERRIDE_REGION);
    assert_int_equal(region.certainty, DAPPLEDV_CERTAINTY_OVERRIDE);
    assert_int_equal(region.sync_for_device_required, said != DAPPLEDV_COHERENCE_COHERENT);
    assert_int_equal(region.sync_for_cpu_required, said != DAPPLEDV_COHERENCE_COHERENT);
    assert_int_equal(region.sync_complete, said != DAPPLEDV_COHERENCE_NONCOHERENT_IO);
    assert_int_equal(region.persistence, DAPPLEDV_PERSISTENCE_CPU_CACHES);
    assert_non_null(region.explanation);
  }
}

// Memory that a confidential guest shares with its device.
void override_region__on_a_bounced_device(void**) {
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_BOUNCED);
  assert_int_equal(region.sync_supported, 0);
  assert_int_equal(override_region(kCapable, &region, DAPPLEDV_COHERENCE_COHERENT), 0);
  assert_int_equal(region.sync_supported, 1);
  assert_int_equal(region.sync_complete, 1);
}

void override_region__refused(void**) {
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_COHERENT);
  const dappledv_region_attr before = region;
  assert_int_equal(override_region(kCapable, nullptr, DAPPLEDV_COHERENCE_COHERENT), EINVAL);
  assert_int_equal(override_region(kCapable, &region, DAPPLEDV_COHERENCE_UNKNOWN), EINVAL);
  assert_int_equal(override_region(kCapable, &region, DAPPLEDV_COHERENCE_BOUNCED), EINVAL);
  assert_int_equal(override_region(kCapable, &region, static_cast<dappledv_coherence>(77)), EINVAL);
  assert_int_equal(override_region(kIncapable, &region, DAPPLEDV_COHERENCE_NONCOHERENT_CPU), EOPNOTSUPP);
  assert_memory_equal(&region, &before, sizeof(region));
  assert_int_equal(override_region(kIncapable, &region, DAPPLEDV_COHERENCE_COHERENT), 0);
}

struct Persist {
  const CpuDescription& cpu;
  PersistenceDomain kernel;
  std::optional<dappledv_persistence> said;
  dappledv_persistence wanted;
  int result;
  dappledv_persistence found;
};

void persist_region__the_caller_then_the_environment_then_the_kernel(void**) {
  constexpr auto kNothing = DAPPLEDV_PERSISTENCE_UNSPECIFIED;
  constexpr auto kController = DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
  constexpr auto kCaches = DAPPLEDV_PERSISTENCE_CPU_CACHES;
  const Persist cases[] = {
      {kCapable, PersistenceDomain::kMemoryController, {}, kNothing, 0, kController},
      {kCapable, PersistenceDomain::kNone, {}, kNothing, 0, kController},
      {kCapable, PersistenceDomain::kCpuCaches, {}, kNothing, 0, kCaches},
      {kIncapable, PersistenceDomain::kCpuCaches, {}, kNothing, 0, kCaches},
      {kIncapable, PersistenceDomain::kMemoryController, {}, kNothing, EOPNOTSUPP, kNothing},
      // Firmware's e820 table and the option memmap= do not name the domain, so a user sets it.
      {kCapable, PersistenceDomain::kUnspecified, {}, kNothing, EOPNOTSUPP, kNothing},
      {kCapable, PersistenceDomain::kUnspecified, kController, kNothing, 0, kController},
      {kCapable, PersistenceDomain::kUnspecified, kCaches, kNothing, 0, kCaches},
      {kCapable, PersistenceDomain::kUnspecified, {}, kController, 0, kController},
      {kCapable, PersistenceDomain::kUnspecified, {}, kCaches, 0, kCaches},
      {kCapable, PersistenceDomain::kCpuCaches, kCaches, kController, 0, kController},
      {kCapable, PersistenceDomain::kCpuCaches, kController, kNothing, 0, kController},
      {kIncapable, PersistenceDomain::kUnspecified, {}, kController, EOPNOTSUPP, kNothing},
      {kIncapable, PersistenceDomain::kUnspecified, kController, kNothing, EOPNOTSUPP, kNothing},
      {kIncapable, PersistenceDomain::kUnspecified, kController, kCaches, 0, kCaches},
      {kCapable, PersistenceDomain::kCpuCaches, {}, static_cast<dappledv_persistence>(9), EINVAL, kNothing},
  };
  for (const Persist& each : cases) {
    dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_COHERENT);
    assert_int_equal(persist_region(each.cpu, each.kernel, each.said, &region, each.wanted), each.result);
    assert_int_equal(region.persistence, each.found);
    assert_int_equal(region.coherence, DAPPLEDV_COHERENCE_COHERENT);
  }
  assert_int_equal(persist_region(kCapable, PersistenceDomain::kNone, {}, nullptr, kNothing), EINVAL);
}

void dmabuf_region__refuses_other_files(void**) {
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_COHERENT);
  const dappledv_region_attr before = region;
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  assert_true(file >= 0);
  errno = ENOTTY;
  assert_int_equal(dmabuf_region(&region, file), EINVAL);
  assert_int_equal(dmabuf_region(&region, -1), EINVAL);
  assert_int_equal(dmabuf_region(nullptr, file), EINVAL);
  assert_int_equal(errno, ENOTTY);
  assert_memory_equal(&region, &before, sizeof(region));
  close(file);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(init_region__is_as_the_device),
      cmocka_unit_test(override_region__what_follows),
      cmocka_unit_test(override_region__on_a_bounced_device),
      cmocka_unit_test(override_region__refused),
      cmocka_unit_test(persist_region__the_caller_then_the_environment_then_the_kernel),
      cmocka_unit_test(dmabuf_region__refuses_other_files),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

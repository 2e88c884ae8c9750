// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The sync calls over a CPU that only records its operations.
#include "provider/device/sync.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "coherence/line_walk.hpp"
#include "provider/device/machine/persistence.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::coherence::BackEnd;
using dapple::provider::persist_ranges;
using dapple::provider::sync_for_cpu;
using dapple::provider::sync_for_device;
using dapple::provider::sync_region;
using dapple::provider::SyncDirection;

// One letter for each operation, in order: c and i for each line cleaned, or cleaned and invalidated; w wait, b before
// maintenance, r before device reads, a after device writes, f full barrier; p for each line persisted, d wait for
// that.
char history[256];
uintptr_t lines[256];
size_t num_lines;

void record(char what) {
  const size_t length = strlen(history);
  if (length + 1 < sizeof(history)) history[length] = what;
}

void record_lines(char what, uint32_t line_size_bytes, const void* address, size_t length) {
  dapple::coherence::for_each_line(reinterpret_cast<uintptr_t>(address), length, line_size_bytes,
                                   [what](uintptr_t line) {
                                     record(what);
                                     if (num_lines < 256) lines[num_lines++] = line;
                                   });
}

BackEnd recorder(uint32_t line_size_bytes) {
  memset(history, 0, sizeof(history));
  num_lines = 0;
  BackEnd back_end = {};
  back_end.cpu = {"test", true, true, "wash", "wash out", "wait", line_size_bytes, 2 * line_size_bytes};
  back_end.clean_range = [](uint32_t size, const void* address, size_t length) noexcept {
    record_lines('c', size, address, length);
  };
  back_end.clean_invalidate_range = [](uint32_t size, const void* address, size_t length) noexcept {
    record_lines('i', size, address, length);
  };
  back_end.persist_range = [](uint32_t size, const void* address, size_t length) noexcept {
    record_lines('p', size, address, length);
  };
  back_end.complete_maintenance = []() noexcept { record('w'); };
  back_end.complete_persistence = []() noexcept { record('d'); };
  back_end.order_before_maintenance = []() noexcept { record('b'); };
  back_end.order_before_device_reads = []() noexcept { record('r'); };
  back_end.order_after_device_writes = []() noexcept { record('a'); };
  back_end.full_barrier = []() noexcept { record('f'); };
  return back_end;
}

iovec range(uintptr_t address, size_t length) {
  return {reinterpret_cast<void*>(address), length};
}

void coherent__orders_and_looks_at_nothing(void**) {
  BackEnd back_end = recorder(64);
  // There is no array: it must not be read.
  sync_for_device(back_end, DAPPLEDV_COHERENCE_COHERENT, nullptr, 5);
  assert_string_equal(history, "r");
  back_end = recorder(64);
  sync_for_cpu(back_end, DAPPLEDV_COHERENCE_COHERENT, nullptr, 5);
  assert_string_equal(history, "a");
}

void noncoherent__maintains_each_line_then_waits_once(void**) {
  const iovec ranges[] = {range(0x1000, 128), range(0x2010, 64), range(0x3000, 0), range(0x403f, 1)};
  for (dappledv_coherence coherence : {DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_UNKNOWN}) {
    BackEnd back_end = recorder(64);
    sync_for_device(back_end, coherence, ranges, 4);
    assert_string_equal(history, "cccccw");
    back_end = recorder(64);
    sync_for_cpu(back_end, coherence, ranges, 4);
    assert_string_equal(history, "biiiiiw");
    const uintptr_t expected[] = {0x1000, 0x1040, 0x2000, 0x2040, 0x4000};
    assert_int_equal(num_lines, 5);
    assert_memory_equal(lines, expected, sizeof(expected));
  }
}

void persistent__writes_each_line_back_then_waits_once(void**) {
  const iovec ranges[] = {range(0x1000, 128), range(0x3000, 0), range(0x403f, 1)};
  BackEnd back_end = recorder(64);
  back_end.cpu.can_persist = true;
  persist_ranges(back_end, DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER, ranges, 3);
  assert_string_equal(history, "bpppd");
  // With eADR the line is persistent in the cache.
  back_end = recorder(64);
  persist_ranges(back_end, DAPPLEDV_PERSISTENCE_CPU_CACHES, ranges, 3);
  assert_string_equal(history, "bd");
}

dappledv_region_attr region_of(dappledv_coherence coherence) {
  dappledv_region_attr region = {};
  region.coherence = coherence;
  region.sync_supported = 1;
  region.explanation = "because";
  return region;
}

void region__says_what_its_sync_does(void**) {
  const iovec ranges[] = {range(0x1000, 64)};
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_COHERENT);
  BackEnd back_end = recorder(64);
  assert_int_equal(sync_region(back_end, SyncDirection::kForDevice, region, ranges, 1), 0);
  assert_int_equal(sync_region(back_end, SyncDirection::kForCpu, region, ranges, 1), 0);
  assert_string_equal(history, "ra");
  region.persistence = DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
  back_end = recorder(64);
  assert_int_equal(sync_region(back_end, SyncDirection::kForCpu, region, ranges, 1), 0);
  assert_string_equal(history, "abpd");
  region = region_of(DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  region.persistence = DAPPLEDV_PERSISTENCE_CPU_CACHES;
  back_end = recorder(64);
  assert_int_equal(sync_region(back_end, SyncDirection::kForDevice, region, ranges, 1), 0);
  assert_string_equal(history, "cwbd");
}

void region__that_nothing_mends_is_a_fence_and_an_error(void**) {
  const iovec ranges[] = {range(0x1000, 64)};
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_BOUNCED);
  region.sync_supported = 0;
  const BackEnd back_end = recorder(64);
  assert_int_equal(sync_region(back_end, SyncDirection::kForDevice, region, ranges, 1), EOPNOTSUPP);
  assert_int_equal(sync_region(back_end, SyncDirection::kForCpu, region, ranges, 1), EOPNOTSUPP);
  assert_string_equal(history, "ff");
}

// A descriptor that is no dma-buf any more: the caller gets the kernel's error.
void region__of_a_dmabuf_asks_the_kernel(void**) {
  const iovec ranges[] = {range(0x1000, 64)};
  dappledv_region_attr region = region_of(DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  region.dmabuf = 1;
  region.dmabuf_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  assert_true(region.dmabuf_fd >= 0);
  const BackEnd back_end = recorder(64);
  errno = EPIPE;
  assert_int_equal(sync_region(back_end, SyncDirection::kForDevice, region, ranges, 1), ENOTTY);
  assert_int_equal(sync_region(back_end, SyncDirection::kForCpu, region, ranges, 1), ENOTTY);
  assert_int_equal(errno, EPIPE);
  assert_string_equal(history, "ff");
  close(region.dmabuf_fd);
}

void noncoherent__uses_the_line_size_of_the_cpu(void**) {
  const iovec ranges[] = {range(0x1001, 254)};
  BackEnd back_end = recorder(32);
  sync_for_device(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, ranges, 1);
  assert_string_equal(history, "ccccccccw");
  back_end = recorder(128);
  sync_for_cpu(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, ranges, 1);
  assert_string_equal(history, "biiw");
}

void noncoherent__no_ranges_is_a_fence(void**) {
  BackEnd back_end = recorder(64);
  sync_for_device(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr, 0);
  assert_string_equal(history, "w");
  back_end = recorder(64);
  sync_for_cpu(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, nullptr, 0);
  assert_string_equal(history, "bw");
}

void noncoherent__end_of_the_address_space(void**) {
  const iovec ranges[] = {range(UINTPTR_MAX - 64, 1000)};
  const BackEnd back_end = recorder(64);
  sync_for_device(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, ranges, 1);
  assert_string_equal(history, "ccw");
}

void io_side__does_the_cpu_part_and_a_full_barrier(void**) {
  const iovec ranges[] = {range(0x1000, 64)};
  BackEnd back_end = recorder(64);
  sync_for_device(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_IO, ranges, 1);
  assert_string_equal(history, "cwf");
  back_end = recorder(64);
  sync_for_cpu(back_end, DAPPLEDV_COHERENCE_NONCOHERENT_IO, ranges, 1);
  assert_string_equal(history, "biwf");
}

// No null pointer is called, for any class.
void cpu_without_instructions__is_a_fence_only(void**) {
  const iovec ranges[] = {range(0x1000, 64)};
  for (dappledv_coherence coherence :
       {DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_COHERENCE_NONCOHERENT_IO}) {
    BackEnd back_end = recorder(64);
    back_end.cpu.can_clean = false;
    back_end.cpu.can_clean_invalidate = false;
    back_end.clean_range = nullptr;
    back_end.clean_invalidate_range = nullptr;
    sync_for_device(back_end, coherence, ranges, 1);
    sync_for_cpu(back_end, coherence, ranges, 1);
    assert_string_equal(history, "ff");
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(coherent__orders_and_looks_at_nothing),
      cmocka_unit_test(noncoherent__maintains_each_line_then_waits_once),
      cmocka_unit_test(region__says_what_its_sync_does),
      cmocka_unit_test(region__that_nothing_mends_is_a_fence_and_an_error),
      cmocka_unit_test(region__of_a_dmabuf_asks_the_kernel),
      cmocka_unit_test(persistent__writes_each_line_back_then_waits_once),
      cmocka_unit_test(noncoherent__uses_the_line_size_of_the_cpu),
      cmocka_unit_test(noncoherent__no_ranges_is_a_fence),
      cmocka_unit_test(noncoherent__end_of_the_address_space),
      cmocka_unit_test(io_side__does_the_cpu_part_and_a_full_barrier),
      cmocka_unit_test(cpu_without_instructions__is_a_fence_only),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions whose memory only a GPU's library can copy, with a library of the test's own. The CPU has nothing at the
// region's address.
#include "provider/soft/memory/gpu_memory.hpp"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <atomic>
#include <utility>

#include "provider/soft/memory/memory_table.hpp"
#include "tests/unit/provider/rig.hpp"

using namespace dapple::soft;
using namespace dapple::roce;
using dapple::tests::rig_of;

namespace {

constexpr uint32_t kDomain = 7;
constexpr Accessor kOwner = {kDomain, 0x10011};
constexpr Accessor kStranger = {kDomain + 1, 0x10011};
constexpr uint32_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind | kFlushGlobal;
constexpr uint64_t kAddress = 0x10;  // no memory is there
constexpr size_t kLength = 256;

class FakeGpu final : public GpuMemory {
 public:
  bool copy_out(const std::byte* from, std::byte* to, size_t size) override {
    sched_yield();
    if (fails) return false;
    memcpy(to, at(from), size);
    return true;
  }
  bool copy_in(std::byte* to, const std::byte* from, size_t size) override {
    sched_yield();
    if (fails) return false;
    memcpy(at(to), from, size);
    stores++;
    return true;
  }
  const char* problem() const override { return fails ? "it fails" : nullptr; }

  std::byte bytes[kLength] = {};
  std::atomic<int> stores{0};
  bool fails = false;

 private:
  std::byte* at(const std::byte* place) { return bytes + (reinterpret_cast<uintptr_t>(place) - kAddress); }
};

struct Rig {
  MemoryTable table{0x12345678};
  FakeGpu gpu;
  uint64_t plain[4] = {1, 2, 3, 4};
  uint32_t key = 0;
  uint32_t plain_key = 0;

  Rig() {
    table.add_region({.domain = kDomain,
                      .memory = reinterpret_cast<std::byte*>(kAddress),
                      .length = kLength,
                      .iova = kAddress,
                      .access = kAllRights,
                      .kind = RegionKind::kGpu,
                      .gpu = &gpu},
                     key);
    table.add_region({.domain = kDomain,
                      .memory = reinterpret_cast<std::byte*>(plain),
                      .length = sizeof plain,
                      .access = kAllRights},
                     plain_key);
  }
};

void accesses__are_copies_of_the_library(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[20], copy[20] = {};
  memset(bytes, 0x5A, sizeof bytes);
  assert_int_equal(rig.table.write(kOwner, {rig.key, kAddress + 3, 20}, bytes), Fault::kNone);
  assert_memory_equal(rig.gpu.bytes + 3, bytes, 20);
  assert_int_equal(rig.table.read(kOwner, {rig.key, kAddress + 3, 20}, copy), Fault::kNone);
  assert_memory_equal(copy, bytes, 20);
  // A list of pieces of both kinds.
  const Segment segments[] = {{kAddress, 8, rig.key}, {0, 8, rig.plain_key}, {kAddress + 100, 4, rig.key}};
  assert_int_equal(rig.table.scatter(kOwner, segments, 0, bytes, 20), Fault::kNone);
  assert_memory_equal(rig.gpu.bytes, bytes, 8);
  assert_memory_equal(rig.plain, bytes, 8);
  assert_memory_equal(rig.gpu.bytes + 100, bytes, 4);
  memset(copy, 0, sizeof copy);
  assert_int_equal(rig.table.gather(kOwner, segments, 4, copy, 16), Fault::kNone);
  assert_memory_equal(copy, bytes, 16);
  assert_int_equal(rig.table.flush(kOwner, {rig.key, kAddress, 8}, 1), Fault::kNone);
}

void rights_and_bounds__come_before_the_copy(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  const Segment beyond = {kAddress + kLength - 4, 8, rig.key};
  assert_int_equal(rig.table.write(kStranger, {rig.key, kAddress, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.write(kOwner, {rig.key, beyond.address, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.scatter(kOwner, {&beyond, 1}, 0, bytes, 8), Fault::kAccess);
  assert_int_equal(rig.table.check_local(kOwner, {&beyond, 1}, true), Fault::kAccess);
  assert_int_equal(rig.gpu.stores, 0);
  uint32_t window = 0;
  assert_int_equal(rig.table.add_window(kDomain, WindowType::kType1, window), 0);
  assert_int_equal(rig.table.bind_window(kOwner, {window, window + 1, rig.key, kRemoteWrite, kAddress, 16}),
                   Fault::kNone);
  const uint32_t rkey = (window & ~0xFFu) | ((window + 1) & 0xFF);
  assert_int_equal(rig.table.write(kOwner, {rkey, kAddress + 8, 8}, bytes), Fault::kNone);
  assert_int_equal(rig.table.write(kOwner, {rkey, kAddress + 9, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {rkey, kAddress, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.gpu.stores, 1);
  assert_int_equal(rig.table.remove_window(window), 0);
}

void failing_copies__are_faults_with_a_reason(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[8] = {};
  uint64_t original = 0;
  KeyHolder holder;
  const Segment segment = {kAddress, 8, rig.key};
  assert_true(rig.table.find_holder(rig.key, holder));
  assert_null(holder.problem);
  rig.gpu.fails = true;
  assert_int_equal(rig.table.write(kOwner, {rig.key, kAddress, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.read(kOwner, {rig.key, kAddress, 8}, bytes), Fault::kAccess);
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kAddress, 1, original), Fault::kAccess);
  assert_int_equal(rig.table.gather(kOwner, {&segment, 1}, 0, bytes, 8), Fault::kAccess);
  assert_int_equal(rig.table.scatter(kOwner, {&segment, 1}, 0, bytes, 8), Fault::kAccess);
  assert_true(rig.table.find_holder(rig.key, holder));
  assert_string_equal(holder.problem, "it fails");
}

void atomics__store_what_changes(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kAddress + 8, 5, original), Fault::kNone);
  assert_int_equal(original, 0);
  assert_int_equal(rig.table.compare_swap(kOwner, rig.key, kAddress + 8, 4, 9, original), Fault::kNone);
  assert_int_equal(original, 5);
  assert_int_equal(rig.gpu.stores, 1);
  assert_int_equal(rig.table.compare_swap(kOwner, rig.key, kAddress + 8, 5, 9, original), Fault::kNone);
  assert_int_equal(rig.table.atomic_write(kOwner, rig.key, kAddress + 8, 9), Fault::kNone);
  assert_int_equal(rig.gpu.stores, 3);
  assert_int_equal(rig.table.fetch_add(kOwner, rig.key, kAddress + 4, 5, original), Fault::kUnaligned);
}

constexpr int kRounds = 100;

void* add_often(void* rig_of_both) {
  Rig& rig = *static_cast<Rig*>(rig_of_both);
  uint64_t original = 0;
  for (int i = 0; i < kRounds; ++i) rig.table.fetch_add(kOwner, rig.key, kAddress + 16, 1, original);
  return nullptr;
}

void atomics__of_two_threads_come_one_at_a_time(void** state) {
  Rig& rig = rig_of<Rig>(state);
  pthread_t other;
  assert_int_equal(pthread_create(&other, nullptr, add_often, &rig), 0);
  add_often(&rig);
  assert_int_equal(pthread_join(other, nullptr), 0);
  uint64_t sum = 0;
  memcpy(&sum, rig.gpu.bytes + 16, sizeof sum);
  assert_int_equal(sum, 2 * kRounds);
}

// Counts the pieces of memory and those of a GPU.
class Counter final : public MemoryTable::Borrower {
 public:
  explicit Counter(bool looks) : looks_(looks) {}
  bool use(std::byte*, size_t, size_t) override {
    used++;
    return true;
  }
  bool pass_gpu() override {
    passed++;
    return looks_;
  }
  int used = 0, passed = 0;

 private:
  const bool looks_;
};

void loans__have_no_memory_of_a_gpu(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const Segment segments[] = {{0, 8, rig.plain_key}, {kAddress, 8, rig.key}, {8, 8, rig.plain_key}};
  for (const bool looks : {false, true}) {
    Counter local(looks), remote(looks);
    const Fault expected = looks ? Fault::kNone : Fault::kFailed;
    assert_int_equal(rig.table.lend(kOwner, segments, 0, 24, true, local), expected);
    assert_int_equal(local.used, looks ? 2 : 1);
    assert_int_equal(local.passed, 1);
    assert_int_equal(rig.table.lend_to_peer(kOwner, {rig.key, kAddress, 8}, kRemoteRead, remote), expected);
    assert_int_equal(remote.used, 0);
  }
  // The bytes of a loan cannot go there, so packets must bring them.
  class Bytes final : public Loan {
   public:
    Bytes() : Loan(8, 1) {}
    bool copy(uint64_t, std::byte*, size_t) const override { return true; }
  };
  assert_int_equal(rig.table.scatter_loan(kOwner, {&segments[1], 1}, 0, Bytes()), Fault::kFailed);
  assert_int_equal(rig.gpu.stores, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      rig_test(accesses__are_copies_of_the_library, Rig),        rig_test(rights_and_bounds__come_before_the_copy, Rig),
      rig_test(failing_copies__are_faults_with_a_reason, Rig),   rig_test(atomics__store_what_changes, Rig),
      rig_test(atomics__of_two_threads_come_one_at_a_time, Rig), rig_test(loans__have_no_memory_of_a_gpu, Rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

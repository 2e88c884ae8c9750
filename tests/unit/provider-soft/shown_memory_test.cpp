// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a program's sanitizer sees of the device's accesses: each of them, before it happens.
#include "provider/soft/sanitizers/shown_memory.hpp"

#include <string.h>

#include "tests/unit/provider/rig.hpp"

using namespace dapple::soft;
using namespace dapple::roce;
using dapple::tests::rig_of;
using Kind = DeviceAccess::Kind;

namespace {

constexpr uint32_t kDomain = 7;
constexpr Accessor kOwner = {kDomain, 0x10011};
constexpr uint32_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
constexpr uint64_t kIova = 0x700000000000;
constexpr std::byte kOld{0x11};
constexpr std::byte kNew{0x22};

// Notes the last access, and how often it was told. The access may not have begun.
class Witness final : public Sanitizer {
 public:
  explicit Witness(const std::byte* memory) : memory_(memory) {}
  void before(const DeviceAccess& access, const void* memory, size_t size) override {
    for (size_t i = 0; i < size; i++) assert_int_equal(static_cast<const std::byte*>(memory)[i], kOld);
    seen_ = {access.kind, static_cast<size_t>(static_cast<const std::byte*>(memory) - memory_), size};
    count_++;
  }
  // This access, and no other, was told since the last call.
  void expect(Kind kind, size_t offset, size_t size) {
    assert_int_equal(count_, 1);
    assert_int_equal(seen_.kind, kind);
    assert_int_equal(seen_.offset, offset);
    assert_int_equal(seen_.size, size);
    count_ = 0;
  }
  void expect_nothing() const { assert_int_equal(count_, 0); }

 private:
  struct Seen {
    Kind kind;
    size_t offset, size;
  };
  const std::byte* const memory_;
  Seen seen_ = {};
  int count_ = 0;
};

class Bytes final : public Loan {
 public:
  Bytes(uint64_t length, bool can_be_fetched) : Loan(length, 1), can_be_fetched_(can_be_fetched) {}
  bool copy(uint64_t, std::byte* to, size_t size) const override {
    if (can_be_fetched_) memset(to, static_cast<int>(kNew), size);
    return can_be_fetched_;
  }

 private:
  const bool can_be_fetched_;
};

struct Rig {
  alignas(64) std::byte memory[256];
  MemoryTable table{0x12345678};
  Witness witness{memory};
  ShownMemory shown{table, witness};
  uint32_t key = 0;

  Rig() {
    memset(memory, static_cast<int>(kOld), sizeof memory);
    const RegionConfig config = {kDomain, memory, sizeof memory, kIova, kAllRights};
    assert_int_equal(table.add_region(config, key), 0);
  }
  Segment segment(uint64_t offset, uint32_t length) const { return {kIova + offset, length, key}; }
};

void peers_accesses__are_shown_before(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[64];
  assert_int_equal(rig.shown.read(kOwner, {rig.key, kIova + 8, 64}, bytes), Fault::kNone);
  rig.witness.expect(Kind::kRead, 8, 64);
  uint64_t original = 0;
  assert_int_equal(rig.shown.fetch_add(kOwner, rig.key, kIova + 16, 1, original), Fault::kNone);
  rig.witness.expect(Kind::kUpdate, 16, 8);
  assert_int_equal(rig.shown.compare_swap(kOwner, rig.key, kIova + 24, 1, 2, original), Fault::kNone);
  rig.witness.expect(Kind::kUpdate, 24, 8);
  assert_int_equal(rig.shown.atomic_write(kOwner, rig.key, kIova + 32, 1), Fault::kNone);
  rig.witness.expect(Kind::kWrite, 32, 8);
  assert_int_equal(rig.shown.write(kOwner, {rig.key, kIova + 64, 64}, bytes), Fault::kNone);
  rig.witness.expect(Kind::kWrite, 64, 64);
}

void own_requests__are_shown_before(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[32];
  const Segment segment = rig.segment(100, 100);
  assert_int_equal(rig.shown.gather(kOwner, {&segment, 1}, 10, bytes, 32), Fault::kNone);
  rig.witness.expect(Kind::kRead, 110, 32);
  assert_int_equal(rig.shown.scatter(kOwner, {&segment, 1}, 20, bytes, 32), Fault::kNone);
  rig.witness.expect(Kind::kWrite, 120, 32);
}

void fetched_bytes__are_shown_before(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const Segment segment = rig.segment(50, 100);
  assert_int_equal(rig.shown.scatter_loan(kOwner, {&segment, 1}, 5, Bytes(40, true)), Fault::kNone);
  rig.witness.expect(Kind::kWrite, 55, 40);
  for (size_t i = 0; i < sizeof rig.memory; i++) assert_int_equal(rig.memory[i], 55 <= i && i < 95 ? kNew : kOld);
}

// Packets bring them later.
void bytes_that_cannot_be_fetched__change_nothing(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const Segment segment = rig.segment(50, 100);
  assert_int_equal(rig.shown.scatter_loan(kOwner, {&segment, 1}, 0, Bytes(40, false)), Fault::kFailed);
  rig.witness.expect(Kind::kWrite, 50, 40);
  for (const std::byte byte : rig.memory) assert_int_equal(byte, kOld);
}

void refused_accesses__are_not_shown(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte bytes[64] = {};
  assert_int_equal(rig.shown.write(kOwner, {rig.key, kIova + 200, 64}, bytes), Fault::kAccess);
  const Segment segment = rig.segment(200, 64);
  assert_int_equal(rig.shown.scatter_loan(kOwner, {&segment, 1}, 0, Bytes(64, true)), Fault::kAccess);
  rig.witness.expect_nothing();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      rig_test(peers_accesses__are_shown_before, Rig), rig_test(own_requests__are_shown_before, Rig),
      rig_test(fetched_bytes__are_shown_before, Rig),  rig_test(bytes_that_cannot_be_fetched__change_nothing, Rig),
      rig_test(refused_accesses__are_not_shown, Rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

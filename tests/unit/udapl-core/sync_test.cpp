// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The checks of the sync calls, and their cache operations, which a recorder replaces.
#include "udapl/core/memory/sync.hpp"

#include <dat2/udat.h>

#include <vector>

#include "tests/unit/udapl-core/fixture.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/memory/pz.hpp"

using namespace dapple::udapl;

namespace {

struct Recorded {
  std::vector<iovec> ranges;
  std::vector<dappledv_coherence> classes;  // of each call
  std::vector<bool> persists;
  int calls = 0;
};
Recorded recorded;

int record(const dappledv_region_attr* attr, const iovec* ranges, size_t count) {
  ++recorded.calls;
  recorded.classes.push_back(attr->coherence);
  recorded.persists.push_back(attr->persistence != DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  for (size_t i = 0; i < count; ++i) recorded.ranges.push_back(ranges[i]);
  return 0;
}

// The part of an IA that sync_segments uses.
class FakeIa {
 public:
  explicit FakeIa(bool maintains) : maintains_(maintains) {
    memory_coherence_[0][0].coherence = maintains ? DAPPLEDV_COHERENCE_NONCOHERENT_IO : DAPPLEDV_COHERENCE_COHERENT;
    memory_coherence_[1][0].coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
    for (auto& [unmarked, persistent] : memory_coherence_) {
      persistent = unmarked;
      persistent.persistence = DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
    }
  }
  LmrTable& lmrs() { return lmrs_; }
  bool maintains_caches() const { return maintains_; }
  const dappledv_region_attr& memory_coherence(bool noncoherent = false, bool persistent = false) const {
    return memory_coherence_[noncoherent][persistent];
  }

 private:
  bool maintains_;
  LmrTable lmrs_;
  dappledv_region_attr memory_coherence_[2][2]{};
};

// Regions without a registration: two over the same address, one after them, and one at the end of the address space.
// They stay until the end of the program.
struct Region {
  ibv_mr mr{};
  Lmr* lmr = nullptr;
  Region(uint32_t context, uint64_t address, uint64_t length, bool zero_based = false, uint32_t marks = 0) {
    static auto& ia = *new no_device::OpenIa;
    static Pz& pz = *arena<Pz>().create(ia.get(), dapple::verbs::Pd{});
    mr.lkey = mr.rkey = context;
    LmrAttr request;
    request.address = reinterpret_cast<void*>(address);
    request.length = length;
    request.privileges = kAllPrivileges | marks;
    request.zero_based = zero_based;
    lmr = arena<Lmr>().create(ia.get(), pz, dapple::verbs::Mr(&mr), request, SharedCookieHold(), false);
  }
};

constexpr uint64_t kBase = 0x10000;
constexpr uint32_t kSize = 0x1000;
constexpr uint32_t kFirst = 11;
constexpr uint32_t kSecond = 12;
constexpr uint32_t kTop = 13;
constexpr uint32_t kZeroBased = 14;
constexpr uint32_t kMarked = 15;             // after the second
constexpr uint32_t kMarkedZeroBased = 16;    // the same memory
constexpr uint32_t kPersists = 17;           // after that
constexpr uint32_t kPersistsAndMarked = 18;  // the same memory
constexpr uint64_t kTopBase = UINT64_MAX - kSize + 1;

void add_regions(FakeIa& ia) {
  static Region& first = *new Region(kFirst, kBase, kSize);
  static Region& second = *new Region(kSecond, kBase + 2 * kSize, kSize);
  static Region& top = *new Region(kTop, kTopBase, kSize);
  static Region& zero_based = *new Region(kZeroBased, kBase, kSize, true);
  static Region& marked = *new Region(kMarked, kBase + 4 * kSize, kSize, false, kNoncoherent);
  static Region& marked_zero_based = *new Region(kMarkedZeroBased, kBase + 4 * kSize, kSize, true, kNoncoherent);
  static Region& persists = *new Region(kPersists, kBase + 6 * kSize, kSize, false, kPersistent);
  static Region& both = *new Region(kPersistsAndMarked, kBase + 6 * kSize, kSize, false, kPersistent | kNoncoherent);
  for (Region* region : {&first, &second, &top, &zero_based, &marked, &marked_zero_based, &persists, &both}) {
    ia.lmrs().add(*region->lmr);
  }
}

DAT_LMR_TRIPLET triplet(uint32_t context, uint64_t address, uint32_t length) {
  DAT_LMR_TRIPLET out{};
  out.lmr_context = context;
  out.virtual_address = address;
  out.segment_length = length;
  return out;
}

Result<> sync(FakeIa& ia, const std::vector<DAT_LMR_TRIPLET>& segments) {
  recorded = {};
  return sync_segments(ia, segments.data(), segments.size(), record);
}

const Error kBadSegment = {Type::kInvalidParameter, Subtype::kSegments};

void expect_refused(const std::vector<DAT_LMR_TRIPLET>& segments) {
  for (const bool maintains : {false, true}) {
    FakeIa ia(maintains);
    add_regions(ia);
    const auto result = sync(ia, segments);
    CHECK(!result && result.error() == kBadSegment);
    CHECK_EQUAL(recorded.calls, 0);
  }
}

void expect_good(const std::vector<DAT_LMR_TRIPLET>& segments) {
  for (const bool maintains : {false, true}) {
    FakeIa ia(maintains);
    add_regions(ia);
    CHECK(sync(ia, segments).has_value());
    CHECK(recorded.calls > 0);
    CHECK_EQUAL(recorded.ranges.size(), maintains ? segments.size() : 0);
    for (size_t i = 0; i < recorded.ranges.size(); ++i) {
      CHECK_EQUAL(reinterpret_cast<uint64_t>(recorded.ranges[i].iov_base), segments[i].virtual_address);
      CHECK_EQUAL(recorded.ranges[i].iov_len, segments[i].segment_length);
    }
  }
}

void sync__no_segments_whatever_the_pointer() {
  FakeIa ia(true);
  CHECK(sync_segments(ia, static_cast<const DAT_LMR_TRIPLET*>(nullptr), 0, record).has_value());
  CHECK(sync_segments(ia, reinterpret_cast<const DAT_LMR_TRIPLET*>(uintptr_t{8}), 0, record).has_value());
}

void sync__null_with_segments() {
  FakeIa ia(true);
  for (const uint64_t count : {uint64_t{1}, uint64_t{1000}, UINT64_MAX}) {
    const auto result = sync_segments(ia, static_cast<const DAT_LMR_TRIPLET*>(nullptr), count, record);
    CHECK(!result && result.error() == kBadSegment);
  }
}

void sync__unknown_lmr_context() {
  expect_refused({triplet(99, kBase, 1)});
  expect_refused({triplet(0, kBase, 1)});
  expect_refused({triplet(99, kBase, 0)});
}

void sync__inside_the_region() {
  expect_good({triplet(kFirst, kBase, kSize)});
  expect_good({triplet(kFirst, kBase, 1)});
  expect_good({triplet(kFirst, kBase + kSize - 1, 1)});
  expect_good({triplet(kTop, kTopBase, kSize)});
}

void sync__outside_the_region() {
  expect_refused({triplet(kFirst, kBase - 1, 1)});
  expect_refused({triplet(kFirst, kBase - 1, kSize)});
  expect_refused({triplet(kFirst, kBase, kSize + 1)});
  expect_refused({triplet(kFirst, kBase + kSize - 1, 2)});
  expect_refused({triplet(kFirst, kBase + kSize, 1)});
  expect_refused({triplet(kFirst, kBase, UINT32_MAX)});
  expect_refused({triplet(kFirst, 0, 1)});
  // Within another region, but not within that of its lmr_context.
  expect_refused({triplet(kFirst, kBase + 2 * kSize, 1)});
  expect_refused({triplet(kSecond, kBase, 1)});
}

void sync__around_the_end_of_the_address_space() {
  expect_refused({triplet(kFirst, UINT64_MAX, UINT32_MAX)});
  expect_refused({triplet(kFirst, UINT64_MAX - 1, 0x10)});
  expect_refused({triplet(kTop, kTopBase + 1, kSize)});
  expect_refused({triplet(kTop, UINT64_MAX, 2)});
  expect_good({triplet(kTop, UINT64_MAX, 1)});
}

void sync__empty_segments_are_checked() {
  expect_good({triplet(kFirst, kBase, 0)});
  expect_good({triplet(kFirst, kBase + kSize, 0)});
  expect_refused({triplet(kFirst, kBase + kSize + 1, 0)});
  expect_refused({triplet(kFirst, kBase - 1, 0)});
}

void sync__several_regions_in_one_call() {
  expect_good({triplet(kFirst, kBase, 5), triplet(kSecond, kBase + 2 * kSize, 6), triplet(kFirst, kBase + 7, 8),
               triplet(kTop, kTopBase, 9), triplet(kFirst, kBase, 0)});
}

void sync__long_lists_in_order_and_whole() {
  for (const uint32_t count : {63U, 64U, 65U, 128U, 1000U}) {
    std::vector<DAT_LMR_TRIPLET> segments;
    for (uint32_t i = 0; i < count; ++i) {
      segments.push_back(i % 2 ? triplet(kFirst, kBase + i, i) : triplet(kSecond, kBase + 2 * kSize + i, i));
    }
    expect_good(segments);
  }
}

void sync__zero_based_segments_are_offsets() {
  FakeIa ia(true);
  add_regions(ia);
  CHECK(sync(ia, {triplet(kZeroBased, 0, kSize), triplet(kFirst, kBase + 1, 2), triplet(kZeroBased, kSize - 3, 3),
                  triplet(kZeroBased, kSize, 0)})
            .has_value());
  const uint64_t expected[] = {kBase, kBase + 1, kBase + kSize - 3, kBase + kSize};
  CHECK_EQUAL(recorded.ranges.size(), 4);
  for (size_t i = 0; i < recorded.ranges.size(); ++i) {
    CHECK_EQUAL(reinterpret_cast<uint64_t>(recorded.ranges[i].iov_base), expected[i]);
  }
  expect_refused({triplet(kZeroBased, 0, kSize + 1)});
  expect_refused({triplet(kZeroBased, kSize - 1, 2)});
  expect_refused({triplet(kZeroBased, kBase, 1)});
  expect_refused({triplet(kZeroBased, UINT64_MAX, 1)});
}

void sync__one_bad_segment_and_nothing_is_touched() {
  for (const size_t bad : {size_t{0}, size_t{63}, size_t{64}, size_t{500}, size_t{999}}) {
    std::vector<DAT_LMR_TRIPLET> segments(1000, triplet(kFirst, kBase, 64));
    segments[bad].segment_length = kSize + 1;
    expect_refused(segments);
  }
}

void sync__a_region_that_has_gone() {
  FakeIa ia(true);
  add_regions(ia);
  CHECK(sync(ia, {triplet(kFirst, kBase, 1)}).has_value());
  (void)ia.lmrs().take(kFirst);
  const auto result = sync(ia, {triplet(kSecond, kBase + 2 * kSize, 1), triplet(kFirst, kBase, 1)});
  CHECK(!result && result.error() == kBadSegment);
  CHECK_EQUAL(recorded.calls, 0);
}

void sync__coherent_orders_once() {
  FakeIa ia(false);
  add_regions(ia);
  CHECK(sync(ia, std::vector<DAT_LMR_TRIPLET>(1000, triplet(kFirst, kBase, 64))).has_value());
  CHECK_EQUAL(recorded.calls, 1);
}

void expect_range(size_t at, uint64_t address, uint64_t length) {
  CHECK(at < recorded.ranges.size());
  CHECK_EQUAL(reinterpret_cast<uint64_t>(recorded.ranges[at].iov_base), address);
  CHECK_EQUAL(recorded.ranges[at].iov_len, length);
}

// A coherent device: only marked memory is maintained.
void sync__marked_memory_on_a_coherent_device() {
  FakeIa ia(false);
  add_regions(ia);
  CHECK(sync(ia, {triplet(kFirst, kBase, 64), triplet(kMarked, kBase + 4 * kSize + 3, 5),
                  triplet(kSecond, kBase + 2 * kSize, 6), triplet(kMarkedZeroBased, 7, 8)})
            .has_value());
  CHECK_EQUAL(recorded.ranges.size(), 2);
  expect_range(0, kBase + 4 * kSize + 3, 5);
  expect_range(1, kBase + 4 * kSize + 7, 8);
  // The others are still ordered.
  CHECK_EQUAL(recorded.calls, 2);
  CHECK_EQUAL(recorded.classes[0], DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  CHECK_EQUAL(recorded.classes[1], DAPPLEDV_COHERENCE_COHERENT);
}

void sync__marked_memory_in_long_lists() {
  for (const uint32_t count : {127U, 128U, 129U, 1000U}) {
    std::vector<DAT_LMR_TRIPLET> segments;
    for (uint32_t i = 0; i < count; ++i) {
      segments.push_back(i % 2 ? triplet(kMarked, kBase + 4 * kSize + i, i) : triplet(kFirst, kBase + i, i));
    }
    FakeIa ia(false);
    add_regions(ia);
    CHECK(sync(ia, segments).has_value());
    CHECK_EQUAL(recorded.ranges.size(), count / 2);
    for (uint32_t i = 0; i < count / 2; ++i) expect_range(i, kBase + 4 * kSize + 2 * i + 1, 2 * i + 1);
    CHECK_EQUAL(recorded.classes.back(), DAPPLEDV_COHERENCE_COHERENT);
  }
}

void sync__marked_memory_and_one_bad_segment() {
  expect_refused({triplet(kMarked, kBase + 4 * kSize, 64), triplet(kFirst, kBase, kSize + 1)});
  expect_refused({triplet(kMarked, kBase + 4 * kSize, kSize + 1)});
}

// The device needs at least the maintenance that the memory needs.
void sync__marked_memory_on_a_device_that_is_not_coherent() {
  FakeIa ia(true);
  add_regions(ia);
  CHECK(sync(ia, {triplet(kFirst, kBase, 64), triplet(kMarked, kBase + 4 * kSize, 5)}).has_value());
  CHECK_EQUAL(recorded.ranges.size(), 2);
  CHECK_EQUAL(recorded.calls, 1);
  CHECK_EQUAL(recorded.classes[0], DAPPLEDV_COHERENCE_NONCOHERENT_IO);
}

// Each kind of memory has a call of its own, in the order of the list; neighbours of the same kind share one.
void sync__persistent_memory() {
  const std::vector<DAT_LMR_TRIPLET> segments = {
      triplet(kPersists, kBase + 6 * kSize, 5),          triplet(kFirst, kBase, 64),
      triplet(kPersists, kBase + 6 * kSize + 8, 6),      triplet(kMarked, kBase + 4 * kSize, 7),
      triplet(kPersistsAndMarked, kBase + 6 * kSize, 8),
  };
  FakeIa coherent(false);
  add_regions(coherent);
  CHECK(sync(coherent, segments).has_value());
  CHECK_EQUAL(recorded.ranges.size(), 4);
  expect_range(0, kBase + 6 * kSize, 5);
  expect_range(1, kBase + 6 * kSize + 8, 6);
  expect_range(2, kBase + 4 * kSize, 7);
  expect_range(3, kBase + 6 * kSize, 8);
  CHECK(recorded.persists == std::vector<bool>({true, false, true, false}));
  CHECK(recorded.classes ==
        std::vector<dappledv_coherence>({DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
                                         DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_COHERENT}));

  FakeIa other(true);
  add_regions(other);
  CHECK(sync(other, segments).has_value());
  CHECK_EQUAL(recorded.ranges.size(), 5);
  CHECK(recorded.persists == std::vector<bool>({true, false, true, false, true}));
  for (const dappledv_coherence found : recorded.classes) CHECK_EQUAL(found, DAPPLEDV_COHERENCE_NONCOHERENT_IO);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(sync__no_segments_whatever_the_pointer),
      TEST(sync__null_with_segments),
      TEST(sync__unknown_lmr_context),
      TEST(sync__inside_the_region),
      TEST(sync__outside_the_region),
      TEST(sync__around_the_end_of_the_address_space),
      TEST(sync__empty_segments_are_checked),
      TEST(sync__several_regions_in_one_call),
      TEST(sync__long_lists_in_order_and_whole),
      TEST(sync__zero_based_segments_are_offsets),
      TEST(sync__one_bad_segment_and_nothing_is_touched),
      TEST(sync__a_region_that_has_gone),
      TEST(sync__coherent_orders_once),
      TEST(sync__marked_memory_on_a_coherent_device),
      TEST(sync__marked_memory_in_long_lists),
      TEST(sync__marked_memory_and_one_bad_segment),
      TEST(sync__marked_memory_on_a_device_that_is_not_coherent),
      TEST(sync__persistent_memory),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

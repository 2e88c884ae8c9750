// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/arm64.hpp"
#include "tests/unit/coherence/check.hpp"

#include <iterator>

namespace {

using dapple::coherence::arm64::CacheType;
using dapple::coherence::arm64::decode_ctr_el0;
using dapple::coherence::arm64::decode_hwcap;
using dapple::coherence::arm64::PersistencePoint;

constexpr uint64_t ctr_el0(unsigned line_log2_words, unsigned granule_log2_words) {
  return uint64_t{line_log2_words} << 16 | uint64_t{granule_log2_words} << 24;
}

// Values that CPUs are known to report.
void known_cpus__decode() {
  const CacheType cortex_a72 = decode_ctr_el0(0x8444c004);
  CHECK(cortex_a72.line_size_bytes == 64);
  CHECK(cortex_a72.writeback_granule_bytes == 64);

  const CacheType cortex_a53 = decode_ctr_el0(0x84448004);
  CHECK(cortex_a53.line_size_bytes == 64);
  CHECK(cortex_a53.writeback_granule_bytes == 64);
}

void each_line_size__decodes() {
  CHECK(decode_ctr_el0(ctr_el0(3, 3)).line_size_bytes == 32);
  CHECK(decode_ctr_el0(ctr_el0(4, 4)).line_size_bytes == 64);
  CHECK(decode_ctr_el0(ctr_el0(5, 5)).line_size_bytes == 128);
  CHECK(decode_ctr_el0(ctr_el0(0, 4)).line_size_bytes == 4);
}

void granule_larger_than_the_line__is_kept() {
  const CacheType type = decode_ctr_el0(ctr_el0(4, 5));
  CHECK(type.line_size_bytes == 64);
  CHECK(type.writeback_granule_bytes == 128);
  CHECK(decode_ctr_el0(ctr_el0(4, 9)).writeback_granule_bytes == 2048);
}

void granule_not_given_or_reserved__is_128() {
  CHECK(decode_ctr_el0(ctr_el0(4, 0)).writeback_granule_bytes == 128);
  for (unsigned reserved = 10; reserved < 16; ++reserved) {
    CHECK(decode_ctr_el0(ctr_el0(4, reserved)).writeback_granule_bytes == 128);
  }
}

void granule__is_never_smaller_than_the_line() {
  CHECK(decode_ctr_el0(ctr_el0(6, 0)).writeback_granule_bytes == 256);
  CHECK(decode_ctr_el0(ctr_el0(5, 3)).writeback_granule_bytes == 128);
}

void other_fields__have_no_say() {
  const uint64_t others = ~(uint64_t{0xf} << 16 | uint64_t{0xf} << 24);
  const CacheType type = decode_ctr_el0(ctr_el0(4, 5) | others);
  CHECK(type.line_size_bytes == 64);
  CHECK(type.writeback_granule_bytes == 128);
}

void hwcap__names_the_deepest_point_of_persistence() {
  constexpr uint64_t kDcpop = uint64_t{1} << 16;
  constexpr uint64_t kDcpodp = uint64_t{1} << 0;
  CHECK(decode_hwcap(0, 0) == PersistencePoint::kNone);
  CHECK(decode_hwcap(~kDcpop, ~kDcpodp) == PersistencePoint::kNone);
  CHECK(decode_hwcap(kDcpop, 0) == PersistencePoint::kPersistence);
  CHECK(decode_hwcap(kDcpop, kDcpodp) == PersistencePoint::kDeepPersistence);
  // In each word the bit of the other word's feature is set.
  CHECK(decode_hwcap(kDcpodp, kDcpop) == PersistencePoint::kNone);
}

constexpr dapple::test::Test kTests[] = {
    {"known_cpus__decode", known_cpus__decode},
    {"each_line_size__decodes", each_line_size__decodes},
    {"granule_larger_than_the_line__is_kept", granule_larger_than_the_line__is_kept},
    {"granule_not_given_or_reserved__is_128", granule_not_given_or_reserved__is_128},
    {"granule__is_never_smaller_than_the_line", granule__is_never_smaller_than_the_line},
    {"other_fields__have_no_say", other_fields__have_no_say},
    {"hwcap__names_the_deepest_point_of_persistence", hwcap__names_the_deepest_point_of_persistence},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}

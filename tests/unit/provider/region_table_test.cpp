// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/overlay/region_table.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;

namespace {

constexpr size_t kMany = 10000;
Region regions[kMany];
ibv_mr mrs[kMany];

void make_regions(uint32_t stride) {
  for (size_t i = 0; i < kMany; ++i) {
    regions[i].mr = &mrs[i];
    regions[i].lkey = static_cast<uint32_t>(i) * stride;
  }
}

void find__many_regions_found_while_they_are_there(void**) {
  for (const uint32_t stride : {1u, 256u, 0x01000001u}) {
    make_regions(stride);
    RegionTable table;
    for (Region& region : regions) table.insert(&region);
    for (Region& region : regions) assert_ptr_equal(table.find(region.lkey), &region);
    for (size_t i = 0; i < kMany; i += 2) assert_ptr_equal(table.remove(&mrs[i], regions[i].lkey), &regions[i]);
    for (size_t i = 0; i < kMany; ++i) {
      assert_ptr_equal(table.find(regions[i].lkey), i % 2 == 0 ? nullptr : &regions[i]);
    }
    size_t left = 0;
    for (const Region* region = table.remove_all(); region != nullptr; region = region->next) ++left;
    assert_int_equal(left, kMany / 2);
    assert_null(table.remove_all());
    assert_null(table.find(regions[1].lkey));
  }
}

void remove__another_mr_with_that_key_stays(void**) {
  make_regions(1);
  RegionTable table;
  table.insert(&regions[5]);
  assert_null(table.remove(&mrs[6], 5));
  assert_null(table.remove(&mrs[5], 6));
  assert_ptr_equal(table.find(5), &regions[5]);
}

bool within(uint64_t addr, uint32_t length, uintptr_t* address) {
  Region region;
  region.address = 0x10000;
  region.length = 0x1000;
  region.iova = 0x500;
  const ibv_sge segment = {addr, length, 0};
  iovec range = {};
  if (!translate(region, segment, &range)) return false;
  assert_int_equal(range.iov_len, length);
  *address = reinterpret_cast<uintptr_t>(range.iov_base);
  return true;
}

void translate__bounds(void**) {
  uintptr_t address = 0;
  assert_true(within(0x500, 0x1000, &address));
  assert_int_equal(address, 0x10000);
  assert_true(within(0x14ff, 1, &address));
  assert_int_equal(address, 0x10fff);
  assert_true(within(0x1500, 0, &address));
  assert_false(within(0x4ff, 1, &address));
  assert_false(within(0x4ff, 0, &address));
  assert_false(within(0x1501, 0, &address));
  assert_false(within(0x1500, 1, &address));
  assert_false(within(0x500, 0x1001, &address));
  assert_false(within(0x600, UINT32_MAX, &address));
  assert_false(within(UINT64_MAX, 2, &address));
  assert_false(within(UINT64_MAX - 1, UINT32_MAX, &address));
}

// On-demand paging of a whole address space.
void translate__region_over_everything(void**) {
  Region region;
  region.length = SIZE_MAX;
  const ibv_sge segment = {0x7fff12345678, 64, 0};
  iovec range = {};
  assert_true(translate(region, segment, &range));
  assert_int_equal(reinterpret_cast<uintptr_t>(range.iov_base), 0x7fff12345678);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(find__many_regions_found_while_they_are_there),
      cmocka_unit_test(remove__another_mr_with_that_key_stays),
      cmocka_unit_test(translate__bounds),
      cmocka_unit_test(translate__region_over_everything),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

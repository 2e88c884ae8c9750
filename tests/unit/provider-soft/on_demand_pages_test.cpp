// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The pages of an on-demand region are counted by their addresses. The tests use no memory there.
#include "provider/soft/memory/on_demand_pages.hpp"

#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

class Counted final : public PagingWatch {
 public:
  void count(const PagingCounts& more) override {
    counts.faults += more.faults;
    counts.invalidations += more.invalidations;
    counts.prefetched += more.prefetched;
  }
  PagingCounts counts;
};

Counted* counted = nullptr;
OnDemandPages* pages = nullptr;

uint64_t page_size() {
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::byte* at(uint64_t page) {
  return reinterpret_cast<std::byte*>(page * page_size());
}

// A region that begins and ends within a page.
void begin_region(uint64_t page, uint64_t count) {
  pages = OnDemandPages::make(at(page) + 100, count * page_size() - 200).release();
  assert_non_null(pages);
  counted = new Counted;
  pages->watched_by(*counted);
}

int end_region(void**) {
  delete pages;
  delete counted;
  pages = nullptr;
  counted = nullptr;
  return 0;
}

void assert_counts(uint32_t faults, uint32_t invalidations, uint32_t prefetched) {
  assert_int_equal(counted->counts.faults, faults);
  assert_int_equal(counted->counts.invalidations, invalidations);
  assert_int_equal(counted->counts.prefetched, prefetched);
}

void used__first_time_only__counts_each_page(void**) {
  begin_region(1000, 200);
  pages->used(at(1000) + 100, 1);
  assert_counts(1, 0, 0);
  pages->used(at(1000) + 100, 50);
  assert_counts(1, 0, 0);
  // The last byte of one page and the first one of the next.
  pages->used(at(1001) - 1, 2);
  assert_counts(2, 0, 0);
  // Across the words in which the pages are marked.
  pages->used(at(1060), 100 * page_size());
  assert_counts(102, 0, 0);
  pages->used(at(1000) + 100, 200 * page_size() - 200);
  assert_counts(200, 0, 0);
}

void missing__of_used_pages__counts_them_as_gone(void**) {
  begin_region(1000, 200);
  pages->missing(at(1010), 10 * page_size());
  assert_counts(0, 0, 0);
  pages->used(at(1015), 70 * page_size());
  pages->missing(at(1010), 10 * page_size());
  assert_counts(70, 5, 0);
  pages->missing(at(1010), 10 * page_size());
  assert_counts(70, 5, 0);
  pages->used(at(1010), 10 * page_size());
  assert_counts(80, 5, 0);
}

void prefetched__counts_all_pages__and_saves_their_faults(void**) {
  begin_region(1000, 200);
  pages->prefetched(at(1100), 64 * page_size());
  pages->used(at(1100), 65 * page_size());
  assert_counts(1, 0, 64);
  pages->prefetched(at(1100), 1);
  assert_counts(1, 0, 65);
}

void region__is_the_whole_address_space(void**) {
  pages = OnDemandPages::make(nullptr, UINT64_MAX).release();
  assert_non_null(pages);
  counted = new Counted;
  pages->watched_by(*counted);
  const uint64_t last = UINT64_MAX / page_size();
  pages->used(at(0), 1);
  pages->used(at(last - 1), 2 * page_size() - 1);
  assert_counts(3, 0, 0);
  pages->used(at(last), 1);
  assert_counts(3, 0, 0);
}

void region__without_bytes__has_pages(void**) {
  pages = OnDemandPages::make(at(3), 0).release();
  assert_non_null(pages);
}

void pages__without_a_watch__are_marked(void**) {
  pages = OnDemandPages::make(at(3), page_size()).release();
  assert_non_null(pages);
  pages->used(at(3), 1);
  counted = new Counted;
  pages->watched_by(*counted);
  pages->used(at(3), 1);
  assert_counts(0, 0, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(used__first_time_only__counts_each_page, end_region),
      cmocka_unit_test_teardown(missing__of_used_pages__counts_them_as_gone, end_region),
      cmocka_unit_test_teardown(prefetched__counts_all_pages__and_saves_their_faults, end_region),
      cmocka_unit_test_teardown(region__is_the_whole_address_space, end_region),
      cmocka_unit_test_teardown(region__without_bytes__has_pages, end_region),
      cmocka_unit_test_teardown(pages__without_a_watch__are_marked, end_region),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

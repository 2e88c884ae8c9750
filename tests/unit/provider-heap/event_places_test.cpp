// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/heap/event_places.hpp"

#include <stdint.h>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::heap::EventPlaces;

constexpr size_t kRoom = 400;
constexpr size_t kPageSizes[] = {4096, 16384, 65536};

char* const kBegin = reinterpret_cast<char*>(uintptr_t{1} << 32);

// mprotect() takes whole pages alone.
void at__any_page_size__begins_and_ends_at_a_page(void**) {
  for (const size_t page_size : kPageSizes) {
    const EventPlaces places(kBegin, page_size, kRoom);
    assert_int_equal(places.place_size() % page_size, 0);
    assert_int_equal(reinterpret_cast<uintptr_t>(places.at(1)) % page_size, 0);
    assert_ptr_equal(places.at(1), kBegin + places.place_size());
    assert_ptr_equal(places.at(EventPlaces::kCount), kBegin + places.size());
  }
}

void place_size__large_event__has_room_for_it(void**) {
  assert_int_equal(EventPlaces(kBegin, 4096, 4096).place_size(), 4096);
  assert_int_equal(EventPlaces(kBegin, 4096, 4097).place_size(), 8192);
}

void number_of__address__gives_its_place_alone(void**) {
  for (const size_t page_size : kPageSizes) {
    const EventPlaces places(kBegin, page_size, kRoom);
    assert_int_equal(places.number_of(kBegin).value_or(99), 0);
    assert_int_equal(places.number_of(places.at(3) - 1).value_or(99), 2);
    assert_int_equal(places.number_of(places.at(3)).value_or(99), 3);
    assert_int_equal(places.number_of(kBegin + places.size() - 1).value_or(99), EventPlaces::kCount - 1);
    assert_false(places.number_of(kBegin - 1).has_value());
    assert_false(places.number_of(kBegin + places.size()).has_value());
  }
}

void number_of__no_memory_yet__finds_nothing(void**) {
  const EventPlaces places(nullptr, 4096, kRoom);
  assert_false(places.number_of(nullptr).has_value());
  assert_false(places.number_of(kBegin).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(at__any_page_size__begins_and_ends_at_a_page),
      cmocka_unit_test(place_size__large_event__has_room_for_it),
      cmocka_unit_test(number_of__address__gives_its_place_alone),
      cmocka_unit_test(number_of__no_memory_yet__finds_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

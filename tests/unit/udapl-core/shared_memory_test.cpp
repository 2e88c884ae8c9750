// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory that the kernel reports as shared, and the memory that equal cookies may name.
#include "udapl/core/memory/shared_memory.hpp"

#include <string>

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

constexpr const char* kMaps =
    "10000-12000 rw-s 00003000 08:02 77     /a file with spaces\n"
    "12000-13000 r--s 00005000 08:02 77     /a file with spaces\n"
    "13000-14000 rw-s 00000000 08:02 77     /a file with spaces\n"
    "15000-16000 rw-p 00000000 08:02 77     /private\n"
    "16000-17000 rw-s 00000000 00:01 5      /dev/zero (deleted)\n"
    "17000-18000 rw-s 00001000 00:01 6      /dev/zero (deleted)\n"
    "7fffffffe000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n"
    "fffffffffffff000-ffffffffffffffff rw-s 00000000 00:01 9 /top";

void expect(uint64_t address, uint64_t length, const SharedMapping& expected) {
  const auto found = find_shared_mapping(kMaps, address, length);
  CHECK(found.has_value());
  if (found) CHECK(*found == expected);
}

void expect_none(uint64_t address, uint64_t length) {
  CHECK(!find_shared_mapping(kMaps, address, length).has_value());
}

constexpr uint64_t kDevice = uint64_t{8} << 32 | 2;

void find_shared_mapping__says_which_bytes() {
  expect(0x10000, 0x2000, {kDevice, 77, 0x3000, 0x2000});
  expect(0x10000, 1, {kDevice, 77, 0x3000, 1});
  expect(0x11234, 0x10, {kDevice, 77, 0x4234, 0x10});
  expect(0x16000, 0x1000, {1, 5, 0, 0x1000});
  expect(0xfffffffffffff000, 0xfff, {1, 9, 0, 0xfff});
}

void find_shared_mapping__over_neighbours_that_continue_each_other() {
  expect(0x11000, 0x2000, {kDevice, 77, 0x4000, 0x2000});
  expect_none(0x12000, 0x2000);  // the next mapping begins elsewhere in the file
  expect_none(0x16000, 0x2000);  // the next mapping is of another object
}

void find_shared_mapping__nothing_that_is_not_all_shared() {
  expect_none(0x15000, 1);
  expect_none(0x14000, 1);
  expect_none(0x13000, 0x1001);
  expect_none(0xf000, 0x1001);
  expect_none(0x7fffffffe000, 16);
  CHECK(!find_shared_mapping("", 1, 1).has_value());
  CHECK(!find_shared_mapping("nonsense\n\n", 1, 1).has_value());
}

SharedCookie cookie(char last) {
  SharedCookie bytes{};
  bytes[5] = 'x';  // after a null byte
  bytes.back() = last;
  return bytes;
}

void shared_cookies__equal_ones_name_one_memory() {
  SharedCookies cookies;
  const SharedMapping memory{1, 2, 3, 4};
  CHECK(cookies.acquire(cookie(1), memory).has_value());
  CHECK(cookies.acquire(cookie(1), memory).has_value());
  for (const SharedMapping& other :
       {SharedMapping{9, 2, 3, 4}, SharedMapping{1, 9, 3, 4}, SharedMapping{1, 2, 9, 4}, SharedMapping{1, 2, 3, 9}}) {
    const auto result = cookies.acquire(cookie(1), other);
    CHECK(!result && result.error() == Error{Type::kInvalidState});
  }
}

void shared_cookies__all_40_bytes_count() {
  SharedCookies cookies;
  CHECK(cookies.acquire(cookie(1), {1, 2, 3, 4}).has_value());
  CHECK(cookies.acquire(cookie(2), {5, 6, 7, 8}).has_value());
}

void shared_cookies__are_free_again_after_the_last_region() {
  SharedCookies cookies;
  CHECK(cookies.acquire(cookie(1), {1, 2, 3, 4}).has_value());
  CHECK(cookies.acquire(cookie(1), {1, 2, 3, 4}).has_value());
  cookies.release(cookie(1));
  CHECK(!cookies.acquire(cookie(1), {5, 6, 7, 8}).has_value());
  cookies.release(cookie(1));
  CHECK(cookies.acquire(cookie(1), {5, 6, 7, 8}).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(find_shared_mapping__says_which_bytes),
      TEST(find_shared_mapping__over_neighbours_that_continue_each_other),
      TEST(find_shared_mapping__nothing_that_is_not_all_shared),
      TEST(shared_cookies__equal_ones_name_one_memory),
      TEST(shared_cookies__all_40_bytes_count),
      TEST(shared_cookies__are_free_again_after_the_last_region),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

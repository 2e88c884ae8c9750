// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's shadows, with the test in the device's place.
#include "provider/emulator/shadow.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;

namespace {

constexpr size_t kPage = Shadow::kPage;
constexpr size_t kPages = 8;
Shadow shadow;
unsigned char* program;
ShadowRegion region;

uintptr_t at(size_t offset) {
  return reinterpret_cast<uintptr_t>(program) + offset;
}

// What the device sees at an offset of the program's memory, in a region that begins at another.
unsigned char* seen(const ShadowRegion& by, size_t offset) {
  return by.view + (at(offset) - by.address + by.address % kPage);
}

void add(ShadowRegion& to, size_t offset, size_t length) {
  to = {at(offset), length, nullptr, nullptr};
  assert_int_equal(shadow.add(&to), 0);
}

int setup(void**) {
  void* memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  program = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < kPages * kPage; ++i) program[i] = static_cast<unsigned char>(i / 64);
  return 0;
}

int teardown(void**) {
  return munmap(program, kPages * kPage);
}

int open_shadow(void**) {
  return shadow.open() ? 0 : -1;
}

void add__device_sees_the_programs_data(void**) {
  add(region, 100, 2 * kPage);
  assert_memory_equal(seen(region, 100), program + 100, 2 * kPage);
  assert_int_equal(reinterpret_cast<uintptr_t>(seen(region, 100)) % kPage, 100);
  shadow.remove(&region);
}

void nothing_moves_without_a_sync(void**) {
  add(region, 0, kPage);
  program[10] = 77;
  assert_int_not_equal(*seen(region, 10), 77);
  *seen(region, 200) = 88;
  assert_int_not_equal(program[200], 88);
  uintptr_t first = 0;
  assert_int_equal(shadow.unsynced_lines(region, &first), 1);
  assert_int_equal(first, at(192));
  shadow.remove(&region);
}

void clean__whole_lines_of_the_cpu_reach_the_device(void**) {
  add(region, 0, kPage);
  program[64] = 1;
  program[127] = 2;
  program[128] = 3;
  shadow.clean(at(100), 1);
  assert_int_equal(*seen(region, 64), 1);
  assert_int_equal(*seen(region, 127), 2);
  assert_int_not_equal(*seen(region, 128), 3);
  // It does not bring the device's data.
  *seen(region, 300) = 99;
  shadow.clean(at(300), 1);
  assert_int_not_equal(program[300], 99);
  shadow.remove(&region);
}

void clean_invalidate__brings_the_devices_lines(void**) {
  uintptr_t first = 0;
  add(region, 0, kPage);
  memset(seen(region, 256), 9, 128);
  shadow.clean_invalidate(at(256), 65);
  assert_int_equal(program[256], 9);
  assert_int_equal(program[383], 9);
  assert_int_equal(shadow.unsynced_lines(region, &first), 0);
  shadow.remove(&region);
}

void clean_invalidate__dirty_line_overwrites_the_devices(void**) {
  const uint64_t lost = shadow.report().lost_bytes;
  add(region, 0, kPage);
  program[70] = 5;
  *seen(region, 80) = 6;
  *seen(region, 81) = 7;
  shadow.clean_invalidate(at(80), 2);
  assert_int_equal(*seen(region, 70), 5);
  assert_int_not_equal(*seen(region, 80), 6);
  assert_int_not_equal(program[80], 6);
  assert_int_equal(shadow.report().lost_bytes - lost, 2);
  shadow.remove(&region);
}

void clean__names_the_region_that_lost_bytes(void**) {
  ShadowRegion over;
  ShadowRegion neighbour;
  add(region, 0, kPage);
  add(over, 70, 20);
  add(neighbour, 90, 100);
  program[64] = 5;
  memset(seen(region, 80), 0xee, 2);
  shadow.clean(at(64), 1);
  assert_int_equal(shadow.look_at(region).lost_bytes, 2);
  assert_int_equal(shadow.look_at(region).first_lost, at(80));
  assert_int_equal(shadow.look_at(over).lost_bytes, 2);
  assert_int_equal(shadow.look_at(neighbour).lost_bytes, 0);
  // A later region over the same bytes has lost none.
  shadow.remove(&over);
  add(over, 70, 20);
  assert_int_equal(shadow.look_at(over).lost_bytes, 0);
  shadow.remove(&neighbour);
  shadow.remove(&over);
  shadow.remove(&region);
}

void unsynced_lines__not_those_of_a_neighbour(void**) {
  ShadowRegion neighbour;
  uintptr_t first = 0;
  add(region, 0, 100);
  add(neighbour, 100, 100);
  *seen(neighbour, 100) = 0xee;
  assert_int_equal(shadow.unsynced_lines(region, &first), 0);
  assert_int_equal(shadow.unsynced_lines(neighbour, &first), 1);
  assert_int_equal(first, at(100));
  *seen(region, 99) = 0xee;
  assert_int_equal(shadow.unsynced_lines(region, &first), 1);
  assert_int_equal(first, at(64));
  shadow.remove(&neighbour);
  shadow.remove(&region);
}

void overlapping_regions_share_a_page(void**) {
  ShadowRegion other;
  add(region, 0, 3 * kPage);
  add(other, kPage + 8, kPage);
  *seen(region, kPage + 16) = 42;
  assert_int_equal(*seen(other, kPage + 16), 42);
  shadow.remove(&region);
  *seen(other, kPage + 17) = 43;
  shadow.clean_invalidate(at(kPage + 16), 2);
  assert_int_equal(program[kPage + 16], 42);
  assert_int_equal(program[kPage + 17], 43);
  shadow.remove(&other);
}

void remove__shadow_is_gone(void**) {
  const ShadowReport before = shadow.report();
  add(region, 0, kPage);
  shadow.remove(&region);
  assert_null(shadow.regions());
  program[0] = 200;
  shadow.clean_invalidate(at(0), kPages * kPage);
  assert_int_equal(program[0], 200);
  assert_int_equal(shadow.report().moved_lines, before.moved_lines);
  assert_int_equal(shadow.report().needless_syncs, before.needless_syncs);
}

void sync__needless_is_counted(void**) {
  add(region, 0, kPage);
  const uint64_t before = shadow.report().needless_syncs;
  shadow.clean(at(1), 128);
  assert_int_equal(shadow.report().needless_syncs - before, 3);
  ShadowRegion other;
  add(other, 2 * kPage - 32, 100);
  shadow.clean(at(0), 3 * kPage);
  assert_int_equal(shadow.report().needless_syncs - before, 3 + 3 * 64);
  assert_int_equal(shadow.look_at(region).needless_lines, 3 + 64);
  assert_int_equal(shadow.look_at(region).first_needless, at(0));
  assert_int_equal(shadow.look_at(other).needless_lines, 3);
  assert_int_equal(shadow.look_at(other).first_needless, at(2 * kPage - 32));
  shadow.remove(&other);
  shadow.clean(at(1), 0);
  shadow.clean(UINTPTR_MAX - 100, SIZE_MAX);
  assert_int_equal(shadow.report().needless_syncs - before, 3 + 3 * 64);
  shadow.remove(&region);
}

void add__memory_that_is_not_there(void**) {
  assert_int_equal(munmap(program + 2 * kPage, kPage), 0);
  ShadowRegion bad = {at(kPage), 3 * kPage, nullptr, nullptr};
  assert_int_equal(shadow.add(&bad), EFAULT);
  assert_null(shadow.regions());
  // Nothing is left of it.
  add(region, kPage, kPage);
  *seen(region, kPage) = 1;
  shadow.remove(&region);
}

void fork__child_leaves_the_parents_shadow_alone(void**) {
  add(region, 0, kPage);
  const pid_t child = fork();
  if (child == 0) {
    program[0] = 123;
    shadow.clean_invalidate(at(0), kPage);
    ShadowRegion more = {at(kPage), kPage, nullptr, nullptr};
    _exit(shadow.add(&more) == EOPNOTSUPP ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_not_equal(*seen(region, 0), 123);
  shadow.remove(&region);
}

// What is written to stderr while look() runs, as text.
const char* said_by(void (*look)(Shadow&, const ShadowRegion&), Shadow& watched, const ShadowRegion& by) {
  static char text[2048];
  const int file = memfd_create("said", 0);
  const int saved = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  look(watched, by);
  dup2(saved, STDERR_FILENO);
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  text[length < 0 ? 0 : length] = '\0';
  close(saved);
  close(file);
  return text;
}

volatile unsigned char sink;

// The region is pages 1 and 2 and a part of page 3.
void innocent(Shadow& watched, const ShadowRegion& by) {
  sink = program[kPage];
  program[kPage + 1] = 77;                       // a write to a line that the device leaves alone
  memcpy(program + 2 * kPage - 8, program, 16);  // an instruction or two that cross a page
  watched.clean(at(kPage), 2 * kPage);           // the device sees both
  *seen(by, 2 * kPage) = 99;                     // the device writes,
  watched.clean_invalidate(at(2 * kPage), 64);   // which is synced
  sink = program[2 * kPage];
  *seen(by, 2 * kPage + 640) = 98;  // not synced, and not read
  program[2 * kPage + 640] = 1;     // a write is no read
  sink = program[2 * kPage + 64];   // nor is its neighbour
  *seen(by, 3 * kPage) = 97;        // in a page that holds other things as well
  sink = program[3 * kPage];
}

void stale(Shadow&, const ShadowRegion& by) {
  *seen(by, kPage + 130) = 96;
  sink = program[kPage + 128];  // the same line
  sink = program[kPage + 129];
}

void watch__tells_the_first_stale_read(void**) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  Shadow watched;
  assert_true(watched.open());
  assert_true(watched.start_watch());
  region = {at(kPage), 2 * kPage + 100};
  assert_int_equal(watched.add(&region), 0);
  watched.watch(&region);
  assert_string_equal(said_by(innocent, watched, region), "");
  assert_int_equal(sink, program[3 * kPage]);
  assert_int_equal(program[kPage + 1], 77);
  assert_int_equal(*seen(region, kPage + 1), 77);
  assert_int_equal(program[2 * kPage], 99);
  assert_memory_equal(program + 2 * kPage + 1, program + 9, 7);

  const char* said = said_by(stale, watched, region);
  char where[64];
  snprintf(where, sizeof where, "offset 128 of the region 0x%zx of %zu bytes", at(kPage), 2 * kPage + 100);
  assert_non_null(strstr(said, where));
  // Once, with the place of the instruction.
  assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
  assert_non_null(strstr(said, "test-provider-shadow+0x"));
  watched.remove(&region);
  program[kPage] = 1;
#else
  skip();
#endif
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(add__device_sees_the_programs_data, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_moves_without_a_sync, setup, teardown),
      cmocka_unit_test_setup_teardown(clean__whole_lines_of_the_cpu_reach_the_device, setup, teardown),
      cmocka_unit_test_setup_teardown(clean_invalidate__brings_the_devices_lines, setup, teardown),
      cmocka_unit_test_setup_teardown(clean_invalidate__dirty_line_overwrites_the_devices, setup, teardown),
      cmocka_unit_test_setup_teardown(clean__names_the_region_that_lost_bytes, setup, teardown),
      cmocka_unit_test_setup_teardown(unsynced_lines__not_those_of_a_neighbour, setup, teardown),
      cmocka_unit_test_setup_teardown(overlapping_regions_share_a_page, setup, teardown),
      cmocka_unit_test_setup_teardown(remove__shadow_is_gone, setup, teardown),
      cmocka_unit_test_setup_teardown(sync__needless_is_counted, setup, teardown),
      cmocka_unit_test_setup_teardown(add__memory_that_is_not_there, setup, teardown),
      cmocka_unit_test_setup_teardown(watch__tells_the_first_stale_read, setup, teardown),
      cmocka_unit_test_setup_teardown(fork__child_leaves_the_parents_shadow_alone, setup, teardown),
  };
  return cmocka_run_group_tests(tests, open_shadow, nullptr);
}

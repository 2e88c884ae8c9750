// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's watch over reads; the test acts as the device. Each test is a process of its own.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <initializer_list>

#include "provider/emulator/shadow/shadow.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/heard_child.hpp"

using namespace dapple::provider;

namespace {

constexpr size_t kPage = Shadow::kPage;
constexpr size_t kPages = 8;
unsigned char* program;
Shadow* watched;
volatile unsigned char sink;

uintptr_t at(size_t offset) {
  return reinterpret_cast<uintptr_t>(program) + offset;
}

unsigned char* seen(const ShadowRegion* by, size_t offset) {
  return by->view + (at(offset) - by->address);
}

uint64_t num_unclean;

void tell(const ShadowFindings& findings) {
  num_unclean += findings.unclean.count;
}

void must(bool condition, int code) {
  if (!condition) _exit(code);
}

ShadowRegion* add(size_t offset, size_t length) {
  ShadowRegion* region = nullptr;
  must(watched->add(at(offset), length, false, &region) == 0, 101);
  must(watched->watch(region), 102);
  watched->registered(region);
  return region;
}

// The exit status of a process that runs this under a watch. `said` holds its messages.
int status_of(void (*work)()) {
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
  skip_test("no watch on this architecture or under ThreadSanitizer");
#endif
  return status_of_child(60, [work] {
    signal(SIGSEGV, SIG_DFL);  // cmocka has one
    program = static_cast<unsigned char*>(
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < kPages * kPage; ++i) program[i] = static_cast<unsigned char>(i / 64);
    watched = new Shadow;
    must(watched->open(tell, kPage) == nullptr, 103);
    must(watched->start_watch(), 104);
    work();
  });
}

// The region is pages 1 and 2 and a part of page 3.
void innocent() {
  ShadowRegion* region = add(kPage, 2 * kPage + 100);
  sink = program[kPage];
  program[kPage + 1] = 77;                       // a write to a line that the device does not use
  memcpy(program + 2 * kPage - 8, program, 16);  // one or two instructions that cross a page
  watched->clean(at(kPage), 2 * kPage);          // the device sees both
  *seen(region, 2 * kPage) = 99;                 // the device writes,
  watched->clean_invalidate(at(2 * kPage), 64);  // which is synced
  sink = program[2 * kPage];
  *seen(region, 2 * kPage + 640) = 98;  // not synced, but not read
  program[2 * kPage + 640] = 1;         // a write is not a read
  sink = program[2 * kPage + 64];       // a read of a neighbouring line
  *seen(region, 3 * kPage) = 97;        // in a page that also holds other data
  sink = program[3 * kPage];
  must(program[kPage + 1] == 77 && *seen(region, kPage + 1) == 77 && program[2 * kPage] == 99, 1);
  must(memcmp(program + 2 * kPage + 1, program + 9, 7) == 0, 2);
  watched->remove(region);
  program[kPage] = 1;
}

void watch__is_silent_about_the_innocent(void**) {
  assert_int_equal(status_of(innocent), 0);
  assert_string_equal(said, "");
}

void stale() {
  ShadowRegion* region = add(kPage, 2 * kPage + 100);
  *seen(region, kPage + 130) = 96;
  fprintf(stderr, "offset 128 of the region 0x%zx of %zu bytes\n", at(kPage), 2 * kPage + 100);
  sink = program[kPage + 128];  // the same line
  sink = program[kPage + 129];
}

void watch__tells_the_first_stale_read(void**) {
  assert_int_equal(status_of(stale), 0);
  char* line = strchr(said, '\n');
  assert_non_null(line);
  *line++ = '\0';
  assert_non_null(strstr(line, said));
  // One message, with the address of the instruction.
  assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
  assert_non_null(strstr(line, "test-provider-shadow_watch+0x"));
}

// The device writes to a watched page, and the program reads it.
void read_a_stale_line(const ShadowRegion* region) {
  *seen(region, kPage + 130) = 96;
  fputs("until now\n", stderr);
  sink = program[kPage + 128];
}

void register_again() {
  ShadowRegion* region = add(kPage, 2 * kPage);
  ShadowRegion* over = nullptr;
  must(watched->add(at(0), 4 * kPage, true, &over) == 0, 1);
  watched->registered(over);
  program[3 * kPage - 1] = 1;
  watched->remove(over);
  must(num_unclean == 1, 2);
  read_a_stale_line(region);
}

void register_across() {
  ShadowRegion* region = add(kPage, 2 * kPage);
  add(kPage + 2048, kPage);  // it has no page for itself
  read_a_stale_line(region);
}

void fail_to_register() {
  ShadowRegion* region = add(kPage, 2 * kPage);
  munmap(program + 3 * kPage, kPage);
  ShadowRegion* none = nullptr;
  must(watched->add(at(kPage), 4 * kPage, false, &none) == EFAULT, 1);
  read_a_stale_line(region);
}

void ask_for_writing() {
  ShadowRegion* region = add(kPage, 2 * kPage);
  must(watched->is_writable(at(kPage), 2 * kPage), 1);
  read_a_stale_line(region);
}

void watch__goes_on_beside_registrations(void**) {
  for (const auto work : {register_again, register_across, fail_to_register, ask_for_writing}) {
    assert_int_equal(status_of(work), 0);
    assert_int_equal(strncmp(said, "until now\n", 10), 0);
    assert_non_null(strstr(said, "is read before a sync"));
  }
}

#if defined(__x86_64__)
bool has_feature(int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> bit & 1) != 0;
}

// The last step of a sync, after a write of the device. The high registers need a longer encoding.
void maintenance() {
  ShadowRegion* region = add(kPage, kPage);
  *seen(region, kPage + 130) = 96;
  unsigned char* line = program + kPage + 128;
  asm volatile("clflush (%0)" : : "r"(line) : "memory");
  asm volatile("mov %0, %%r9\n\tclflush 8(%%r9)" : : "r"(line) : "r9", "memory");
  if (has_feature(23)) asm volatile("clflushopt (%0)" : : "r"(line) : "memory");
  if (has_feature(24)) asm volatile("mov %0, %%r9\n\tclwb (%%r9)" : : "r"(line) : "r9", "memory");
  fputs("until now\n", stderr);
  sink = *line;
}

void watch__takes_no_cache_maintenance_for_a_read(void**) {
  assert_int_equal(status_of(maintenance), 0);
  assert_int_equal(strncmp(said, "until now\n", 10), 0);
  assert_non_null(strstr(said, "is read before a sync"));
}
#endif

std::atomic<bool> over;

void* read_on(void*) {
  while (!over) {
    for (size_t i = 0; i < kPages * kPage; i += 512) sink = program[i];
  }
  return nullptr;
}

void read_beside_registrations() {
  pthread_t readers[2];
  for (pthread_t& reader : readers) must(pthread_create(&reader, nullptr, read_on, nullptr) == 0, 1);
  add(0, kPage);
  for (int i = 0; i < 3000; ++i) {
    watched->remove(add(static_cast<size_t>(i % 4) * kPage, 4 * kPage));
    must(watched->is_writable(at(0), kPage), 2);
  }
  over = true;
  for (const pthread_t reader : readers) pthread_join(reader, nullptr);
}

void watch__lets_readers_live_beside_registrations(void**) {
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(status_of(read_beside_registrations), 0);
    assert_string_equal(said, "");
  }
}

// A page that was watched, and that the program has made inaccessible itself.
void genuine_fault() {
  watched->remove(add(0, kPage));
  mprotect(program, kPage, PROT_NONE);
  sink = program[0];
}

void watch__genuine_faults_stay_faults(void**) {
  const int status = status_of(genuine_fault);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

void send_segv() {
  kill(getpid(), SIGSEGV);
  _exit(9);
}

void watch__signals_that_were_sent_stay_signals(void**) {
  const int status = status_of(send_segv);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
    cmocka_unit_test(watch__is_silent_about_the_innocent),
    cmocka_unit_test(watch__tells_the_first_stale_read),
    cmocka_unit_test(watch__goes_on_beside_registrations),
#if defined(__x86_64__)
    cmocka_unit_test(watch__takes_no_cache_maintenance_for_a_read),
#endif
    cmocka_unit_test(watch__lets_readers_live_beside_registrations),
    cmocka_unit_test(watch__genuine_faults_stay_faults),
    cmocka_unit_test(watch__signals_that_were_sent_stay_signals),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

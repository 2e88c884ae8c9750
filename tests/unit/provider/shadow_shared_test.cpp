// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's shadows of memory that the program has mapped more than once, and a handler that leaves a sync; the
// test acts as the device.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <vector>

#include "provider/emulator/shadow/shadow.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/kernel_page.hpp"

using namespace dapple::provider;

namespace {

const size_t kPage = kKernelPage;
constexpr size_t kPages = 8;
Shadow shadow;
std::vector<ShadowFindings> told;
int file;

void tell(const ShadowFindings& findings) {
  if (findings.unsynced.count + findings.unclean.count + findings.lost_bytes.count > 0) told.push_back(findings);
}

uintptr_t at(const unsigned char* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

unsigned char* map_file(size_t first_page, size_t pages, int flags = MAP_SHARED, void* where = nullptr) {
  void* memory =
      mmap(where, pages * kPage, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(first_page * kPage));
  assert_ptr_not_equal(memory, MAP_FAILED);
  return static_cast<unsigned char*>(memory);
}

ShadowRegion* add(const unsigned char* memory, size_t length) {
  ShadowRegion* region = nullptr;
  assert_int_equal(shadow.add(at(memory), length, false, &region), 0);
  shadow.registered(region);
  return region;
}

int add_error(const unsigned char* memory, size_t length) {
  ShadowRegion* region = nullptr;
  const int error = shadow.add(at(memory), length, false, &region);
  if (error != 0) return error;
  shadow.registered(region);
  shadow.remove(region);
  return 0;
}

int setup(void**) {
  file = memfd_create("test", MFD_CLOEXEC);
  told.clear();
  return ftruncate(file, kPages * kPage);
}

int teardown(void**) {
  return close(file);
}

int open_shadow(void**) {
  return shadow.open(tell, kPage) == nullptr ? 0 : -1;
}

// ---- Two mappings ----

void two_mappings__one_shadow(void**) {
  unsigned char* first = map_file(0, 4);
  unsigned char* second = map_file(2, 4);
  first[2 * kPage] = 1;
  ShadowRegion* by_first = add(first, 4 * kPage);
  ShadowRegion* by_second = add(second + 8, 4 * kPage - 8);
  // The device writes by one region; a sync of the other mapping brings it to both.
  by_first->view[2 * kPage + 100] = 42;
  assert_int_equal(by_second->view[100 - 8], 42);
  shadow.clean_invalidate(at(second + 100), 1);
  assert_int_equal(first[2 * kPage + 100], 42);
  // The CPU writes by one mapping and cleans by the other.
  second[kPage] = 43;
  assert_int_not_equal(by_first->view[3 * kPage], 43);
  assert_int_equal(shadow.dirty_bytes(at(first + 3 * kPage), 1).count, 1);
  shadow.clean(at(first + 3 * kPage), 1);
  assert_int_equal(by_second->view[kPage - 8], 43);
  shadow.remove(by_first);
  // The second has its own shadow left.
  by_second->view[200 - 8] = 44;
  shadow.clean_invalidate(at(second + 200), 1);
  assert_int_equal(second[200], 44);
  shadow.remove(by_second);
  assert_int_equal(told.size(), 0);
  assert_int_equal(shadow.num_pages(), 0);
  munmap(first, 4 * kPage);
  munmap(second, 4 * kPage);
}

void two_mappings__findings_at_the_regions_own_addresses(void**) {
  unsigned char* first = map_file(0, 2);
  unsigned char* second = map_file(0, 2);
  ShadowRegion* by_first = add(first, 100);
  ShadowRegion* by_second = add(second + 100, 100);
  by_second->view[50] = 1;
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].address, at(second + 100));
  assert_int_equal(told[0].unsynced.first, at(second + 128));
  // A write-back by the other mapping loses the bytes of the region that has them.
  first[130] = 9;
  shadow.clean(at(first + 130), 1);
  told.clear();
  shadow.remove(by_second);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].lost_bytes.count, 1);
  assert_int_equal(told[0].lost_bytes.first, at(second + 150));
  shadow.remove(by_first);
  assert_int_equal(told.size(), 1);
  munmap(first, 2 * kPage);
  munmap(second, 2 * kPage);
}

// A ring buffer whose memory is mapped twice in a row, in one region.
void two_mappings__in_one_region(void**) {
  void* room = mmap(nullptr, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char* ring = map_file(0, 2, MAP_SHARED | MAP_FIXED, room);
  map_file(0, 2, MAP_SHARED | MAP_FIXED, ring + 2 * kPage);
  ShadowRegion* region = add(ring, 4 * kPage);
  memset(region->view + 2 * kPage - 64, 5, 128);
  assert_int_equal(region->view[0], 5);
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unsynced.count, 2);
  shadow.clean_invalidate(at(ring + 2 * kPage - 64), 128);
  assert_int_equal(ring[0], 5);
  assert_int_equal(ring[4 * kPage - 1], 5);
  shadow.remove(region);
  assert_int_equal(told.size(), 1);
  assert_int_equal(shadow.num_pages(), 0);
  munmap(ring, 4 * kPage);
}

void two_mappings__late_sync_by_the_same_address(void**) {
  unsigned char* first = map_file(0, 2);
  unsigned char* second = map_file(0, 2);
  ShadowRegion* by_first = add(first, kPage);
  by_first->view[10] = 7;
  shadow.remove(by_first);
  shadow.clean_invalidate(at(first + 10), 1);
  assert_int_equal(second[10], 7);
  assert_int_equal(told.size(), 0);
  assert_int_equal(shadow.num_pages(), 0);
  munmap(first, 2 * kPage);
  munmap(second, 2 * kPage);
}

// Other memory comes to the address of a mapping that is gone, while the object has a shadow by another mapping.
void two_mappings__other_memory_at_the_address_of_one(void**) {
  unsigned char* first = map_file(0, 1);
  unsigned char* second = map_file(0, 1);
  ShadowRegion* by_second = add(second, kPage);
  shadow.remove(add(first, kPage));
  mmap(first, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  by_second->view[0] = 3;
  first[0] = 4;
  shadow.clean_invalidate(at(first), 1);
  assert_int_equal(first[0], 4);
  assert_int_equal(by_second->view[0], 3);
  ShadowRegion* by_first = add(first, kPage);
  by_first->view[1] = 5;
  assert_int_equal(by_second->view[1], 0);
  shadow.clean_invalidate(at(first), 2);
  assert_int_equal(first[1], 5);
  shadow.clean_invalidate(at(second), 1);
  assert_int_equal(second[0], 3);
  shadow.remove(by_first);
  shadow.remove(by_second);
  assert_int_equal(told.size(), 0);
  munmap(first, kPage);
  munmap(second, kPage);
}

void private_mappings__a_shadow_each(void**) {
  unsigned char* first = map_file(0, 1, MAP_PRIVATE);
  unsigned char* second = map_file(0, 1, MAP_PRIVATE);
  ShadowRegion* by_first = add(first, kPage);
  ShadowRegion* by_second = add(second, kPage);
  by_first->view[0] = 1;
  assert_int_equal(by_second->view[0], 0);
  shadow.clean_invalidate(at(first), 1);
  shadow.remove(by_first);
  shadow.remove(by_second);
  munmap(first, kPage);
  munmap(second, kPage);
}

// A region over memory of several kinds is one view.
void region__over_private_and_shared_memory(void**) {
  auto* memory =
      static_cast<unsigned char*>(mmap(nullptr, 6 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  map_file(5, 1, MAP_SHARED | MAP_FIXED, memory + kPage);
  map_file(0, 2, MAP_SHARED | MAP_FIXED, memory + 3 * kPage);
  for (size_t i = 0; i < 6; ++i) memory[i * kPage] = static_cast<unsigned char>(i + 1);
  ShadowRegion* region = add(memory + 16, 6 * kPage - 16);
  for (size_t i = 1; i < 6; ++i) assert_int_equal(region->view[i * kPage - 16], i + 1);
  memset(region->view, 0xee, 6 * kPage - 16);
  shadow.clean_invalidate(at(memory), 6 * kPage);
  for (size_t i = 16; i < 6 * kPage; ++i) assert_int_equal(memory[i], 0xee);
  shadow.remove(region);
  assert_int_equal(told.size(), 0);
  assert_int_equal(shadow.num_pages(), 0);
  munmap(memory, 6 * kPage);
}

void sysv_segment__attached_twice(void**) {
  const int id = shmget(IPC_PRIVATE, kPage, IPC_CREAT | 0600);
  if (id < 0) skip();
  auto* first = static_cast<unsigned char*>(shmat(id, nullptr, 0));
  auto* second = static_cast<unsigned char*>(shmat(id, nullptr, 0));
  shmctl(id, IPC_RMID, nullptr);
  ShadowRegion* by_first = add(first, kPage);
  ShadowRegion* by_second = add(second, kPage);
  by_first->view[5] = 6;
  assert_int_equal(by_second->view[5], 6);
  shadow.clean_invalidate(at(first), kPage);
  shadow.remove(by_first);
  shadow.remove(by_second);
  shmdt(first);
  shmdt(second);
}

// ---- Two processes ----

// The exit status of a child that runs work() with a shadow of its own.
int in_child(int (*work)()) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    shadow.~Shadow();
    new (&shadow) Shadow;
    _exit(shadow.open(tell, kPage) == nullptr ? work() : 100);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

unsigned char* common;

void two_processes__one_registers_a_page(void**) {
  common = map_file(0, kPages);
  ShadowRegion* region = add(common + kPage, 2 * kPage);
  // The other process is refused these pages, and no others.
  assert_int_equal(in_child([] { return add_error(common, kPages * kPage); }), EBUSY);
  assert_int_equal(in_child([] { return add_error(common + 2 * kPage + 100, 1); }), EBUSY);
  assert_int_equal(in_child([] { return add_error(common, kPage); }), 0);
  assert_int_equal(in_child([] { return add_error(common + 3 * kPage, (kPages - 3) * kPage); }), 0);
  // The region that was not refused still works, and so do more regions of the first process.
  shadow.remove(add(common, kPages * kPage));
  assert_int_equal(in_child([] { return add_error(common + kPage, 1); }), EBUSY);
  assert_int_equal(in_child([] { return add_error(common, kPage); }), 0);
  shadow.remove(region);
  assert_int_equal(in_child([] { return add_error(common, kPages * kPage); }), 0);
  munmap(common, kPages * kPage);
}

// A child keeps no claim of its parent, and a process that ends leaves none.
void two_processes__claims_end_with_their_process(void**) {
  common = map_file(0, 1);
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  fflush(nullptr);
  const pid_t parent = fork();
  if (parent == 0) {
    shadow.~Shadow();
    new (&shadow) Shadow;
    ShadowRegion* region = nullptr;
    if (shadow.open(tell, kPage) != nullptr || shadow.add(at(common), kPage, false, &region) != 0) _exit(1);
    if (fork() == 0) {
      // The child has given up the claim when its fork() returns, which may be after the end of the parent.
      const pid_t child = getpid();
      if (write(ready[1], &child, sizeof child) != sizeof child) _exit(1);
      close(ready[0]);
      pause();
    }
    _exit(0);
  }
  int status = -1;
  waitpid(parent, &status, 0);
  assert_int_equal(status, 0);
  pid_t orphan = 0;
  assert_int_equal(read(ready[0], &orphan, sizeof orphan), sizeof orphan);
  assert_int_equal(add_error(common, kPage), 0);
  kill(orphan, SIGKILL);
  close(ready[0]);
  close(ready[1]);
  munmap(common, kPage);
}

void two_processes__private_memory_is_their_own(void**) {
  common =
      static_cast<unsigned char*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ShadowRegion* region = add(common, kPage);
  assert_int_equal(in_child([] { return add_error(common, kPage); }), 0);
  shadow.remove(region);
  munmap(common, kPage);
}

// ---- A handler that leaves a sync ----

sigjmp_buf way_out;

void leave(int) {
  siglongjmp(way_out, 1);
}

void* sync_page(void* memory) {
  shadow.clean_invalidate(at(static_cast<unsigned char*>(memory)), kPage);
  return nullptr;
}

void sync__handler_leaves_it_and_the_lock_is_free(void**) {
  unsigned char* gone = map_file(0, 1);
  unsigned char* there = map_file(1, 1);
  ShadowRegion* by_gone = add(gone, kPage);
  ShadowRegion* by_there = add(there, kPage);
  struct sigaction before;
  struct sigaction action = {};
  action.sa_handler = leave;
  sigaction(SIGSEGV, &action, &before);
  munmap(gone, kPage);
  volatile bool left = false;
  if (sigsetjmp(way_out, 1) == 0) {
    sync_page(gone);
  } else {
    left = true;
  }
  assert_true(left);
  assert_false(SignalSafeLock::is_held_here());
  alarm(60);
  by_there->view[0] = 8;
  pthread_t other;
  assert_int_equal(pthread_create(&other, nullptr, sync_page, there), 0);
  pthread_join(other, nullptr);
  assert_int_equal(there[0], 8);
  shadow.remove(by_gone);
  shadow.remove(by_there);
  alarm(0);
  sigaction(SIGSEGV, &before, nullptr);
  munmap(there, kPage);
}

}  // namespace

#define SHARED_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main() {
  const CMUnitTest tests[] = {
      SHARED_TEST(two_mappings__one_shadow),
      SHARED_TEST(two_mappings__findings_at_the_regions_own_addresses),
      SHARED_TEST(two_mappings__in_one_region),
      SHARED_TEST(two_mappings__late_sync_by_the_same_address),
      SHARED_TEST(two_mappings__other_memory_at_the_address_of_one),
      SHARED_TEST(private_mappings__a_shadow_each),
      SHARED_TEST(region__over_private_and_shared_memory),
      SHARED_TEST(sysv_segment__attached_twice),
      SHARED_TEST(two_processes__one_registers_a_page),
      SHARED_TEST(two_processes__claims_end_with_their_process),
      SHARED_TEST(two_processes__private_memory_is_their_own),
      SHARED_TEST(sync__handler_leaves_it_and_the_lock_is_free),
  };
  return cmocka_run_group_tests(tests, open_shadow, nullptr);
}

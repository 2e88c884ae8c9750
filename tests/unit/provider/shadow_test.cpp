// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's shadows; the test acts as the device.
#include "provider/emulator/shadow/shadow.hpp"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/soak/memory_limit.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/kernel_page.hpp"

using namespace dapple::provider;

namespace {

const size_t kPage = kKernelPage;
constexpr size_t kLine = 64;
constexpr size_t kPages = 40;
Shadow shadow;
unsigned char* program;
std::vector<ShadowFindings> told;
uint64_t told_needless;

uintptr_t at(size_t offset) {
  return reinterpret_cast<uintptr_t>(program) + offset;
}

void tell(const ShadowFindings& findings) {
  told_needless += findings.needless.count;
  if (findings.unsynced.count + findings.unclean.count + findings.lost_bytes.count > 0) told.push_back(findings);
}

// The device's view of an offset of the program's memory, in a region that begins at another offset.
unsigned char* seen(const ShadowRegion* by, size_t offset) {
  return by->view + (at(offset) - by->address);
}

ShadowRegion* add(size_t offset, size_t length, bool peers_read = false) {
  ShadowRegion* region = nullptr;
  assert_int_equal(shadow.add(at(offset), length, peers_read, &region), 0);
  shadow.registered(region);
  return region;
}

int setup(void**) {
  void* memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  program = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < kPages * kPage; ++i) program[i] = static_cast<unsigned char>(i / 64);
  told.clear();
  told_needless = 0;
  return 0;
}

int teardown(void**) {
  return munmap(program, kPages * kPage);
}

int open_shadow(void**) {
  return shadow.open(tell, kPage) == nullptr ? 0 : -1;
}

size_t num_maps() {
  FILE* maps = fopen("/proc/self/maps", "r");
  size_t lines = 0;
  for (int c = getc(maps); c != EOF; c = getc(maps)) lines += c == '\n';
  fclose(maps);
  return lines;
}

// ---- Lines ----

void add__device_sees_the_programs_data(void**) {
  ShadowRegion* region = add(100, 2 * kPage);
  assert_memory_equal(seen(region, 100), program + 100, 2 * kPage);
  assert_int_equal(reinterpret_cast<uintptr_t>(seen(region, 100)) % kPage, 100);
  shadow.remove(region);
}

void nothing_moves_without_a_sync(void**) {
  ShadowRegion* region = add(0, kPage);
  program[10] = 77;
  assert_int_not_equal(*seen(region, 10), 77);
  *seen(region, 200) = 88;
  assert_int_not_equal(program[200], 88);
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unsynced.count, 1);
  assert_int_equal(told[0].unsynced.first, at(192));
  shadow.clean_invalidate(at(200), 1);
  shadow.remove(region);
}

void clean__whole_lines_of_the_cpu_reach_the_device(void**) {
  ShadowRegion* region = add(0, kPage);
  program[64] = 1;
  program[127] = 2;
  program[128] = 3;
  shadow.clean(at(100), 1);
  assert_int_equal(*seen(region, 64), 1);
  assert_int_equal(*seen(region, 127), 2);
  assert_int_not_equal(*seen(region, 128), 3);
  // Cleaning does not fetch the device's data.
  *seen(region, 300) = 99;
  shadow.clean(at(300), 1);
  assert_int_not_equal(program[300], 99);
  shadow.clean_invalidate(at(300), 1);
  shadow.remove(region);
}

void clean_invalidate__brings_the_devices_lines(void**) {
  ShadowRegion* region = add(0, kPage);
  memset(seen(region, 256), 9, 128);
  shadow.clean_invalidate(at(256), 65);
  assert_int_equal(program[256], 9);
  assert_int_equal(program[383], 9);
  shadow.remove(region);
  assert_int_equal(told.size(), 0);
}

void clean_invalidate__dirty_line_overwrites_the_devices(void**) {
  const uint64_t lost = shadow.totals().lost_bytes.count;
  ShadowRegion* region = add(0, kPage);
  program[70] = 5;
  *seen(region, 80) = 6;
  *seen(region, 81) = 7;
  shadow.clean_invalidate(at(80), 2);
  assert_int_equal(*seen(region, 70), 5);
  assert_int_not_equal(*seen(region, 80), 6);
  assert_int_not_equal(program[80], 6);
  assert_int_equal(shadow.totals().lost_bytes.count - lost, 2);
  shadow.remove(region);
}

void clean__names_the_region_that_lost_bytes(void**) {
  ShadowRegion* region = add(0, kPage);
  ShadowRegion* over = add(70, 20);
  ShadowRegion* neighbour = add(90, 100);
  program[64] = 5;
  memset(seen(region, 80), 0xee, 2);
  shadow.clean(at(64), 1);
  shadow.remove(over);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].address, at(70));
  assert_int_equal(told[0].lost_bytes.count, 2);
  assert_int_equal(told[0].lost_bytes.first, at(80));
  // A later region over the same bytes has lost no data.
  over = add(70, 20);
  shadow.remove(over);
  shadow.remove(neighbour);
  assert_int_equal(told.size(), 1);
  shadow.remove(region);
  assert_int_equal(told.size(), 2);
  assert_int_equal(told[1].lost_bytes.count, 2);
}

void unsynced__not_those_of_a_neighbour(void**) {
  ShadowRegion* region = add(0, 100);
  ShadowRegion* neighbour = add(100, 100);
  *seen(neighbour, 100) = 0xee;
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].address, at(100));
  assert_int_equal(told[0].unsynced.first, at(100));
  *seen(region, 99) = 0xee;
  told.clear();
  shadow.tell_all();
  assert_int_equal(told.size(), 2);
  assert_int_equal(told[0].unsynced.first, at(64));
  shadow.clean_invalidate(at(0), 200);
  shadow.remove(neighbour);
  shadow.remove(region);
}

void overlapping_regions_share_a_page(void**) {
  ShadowRegion* region = add(0, 3 * kPage);
  ShadowRegion* other = add(kPage + 8, kPage);
  *seen(region, kPage + 16) = 42;
  assert_int_equal(*seen(other, kPage + 16), 42);
  shadow.remove(region);
  *seen(other, kPage + 17) = 43;
  shadow.clean_invalidate(at(kPage + 16), 2);
  assert_int_equal(program[kPage + 16], 42);
  assert_int_equal(program[kPage + 17], 43);
  shadow.remove(other);
  assert_int_equal(told.size(), 0);
}

std::atomic<bool> over;

// Fills its half of the line and cleans it, like a sender that does not own the other half.
void* fill_halves(void* half) {
  const auto offset = reinterpret_cast<uintptr_t>(half);
  for (uint64_t round = 1; round <= 20'000; ++round) {
    for (size_t i = 0; i < 4; ++i) {
      __atomic_store_n(reinterpret_cast<uint64_t*>(program + offset) + i, round, __ATOMIC_RELAXED);
    }
    shadow.clean(at(offset), 32);
  }
  return nullptr;
}

void clean__two_owners_of_halves_lose_nothing(void**) {
  const uint64_t lost = shadow.totals().lost_bytes.count;
  ShadowRegion* region = add(0, kPage);
  pthread_t other;
  assert_int_equal(pthread_create(&other, nullptr, fill_halves, reinterpret_cast<void*>(32)), 0);
  fill_halves(nullptr);
  assert_int_equal(pthread_join(other, nullptr), 0);
  assert_memory_equal(seen(region, 0), program, 64);
  assert_int_equal(shadow.totals().lost_bytes.count, lost);
  shadow.remove(region);
}

void sync__needless_is_counted(void**) {
  ShadowRegion* region = add(0, kPage);
  const uint64_t before = shadow.totals().needless_lines;
  shadow.clean(at(1), 128);
  assert_int_equal(shadow.totals().needless_lines - before, 3);
  ShadowRegion* other = add(2 * kPage - 32, 100);
  shadow.clean(at(0), 3 * kPage);
  assert_int_equal(shadow.totals().needless_lines - before, 3 + 3 * kPage / kLine);
  shadow.clean(at(1), 0);
  shadow.clean(UINTPTR_MAX - 100, SIZE_MAX);
  assert_int_equal(shadow.totals().needless_lines - before, 3 + 3 * kPage / kLine);
  shadow.remove(other);
  shadow.remove(region);
}

// Its peers do not read the region, so the program's memory is not looked at.
void sync__needless_of_the_first_line_is_told(void**) {
  ShadowRegion* region = add(0, kPage);
  shadow.clean(at(0), 1);
  shadow.remove(region);
  assert_int_equal(told_needless, 1);
}

void sync__moved_is_counted(void**) {
  ShadowRegion* region = add(0, kPage);
  const uint64_t before = shadow.totals().moved_lines;
  ++program[64];
  ++*seen(region, 200);
  shadow.clean_invalidate(at(0), kPage);
  assert_int_equal(shadow.totals().moved_lines - before, 2);
  shadow.remove(region);
}

// The least of several.
int64_t ns_of_a_sync() {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 100; ++i) {
    timespec begin;
    timespec end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    shadow.clean(at(0), kPages * kPage);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const int64_t ns = (end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec;
    if (ns < least) least = ns;
  }
  return least;
}

// Other programs may make any measurement slower, so the least of many counts, and both kinds have their turns.
void sync__costs_the_same_among_many_regions(void**) {
  int64_t few = INT64_MAX;
  int64_t many = INT64_MAX;
  for (int round = 0; round == 0 || (round < 50 && many >= 4 * few); ++round) {
    std::vector<ShadowRegion*> regions = {add(0, kPages * kPage)};
    few = std::min(few, ns_of_a_sync());
    for (size_t i = 0; i < 5000; ++i) regions.push_back(add(i * 32, 32));
    many = std::min(many, ns_of_a_sync());
    for (ShadowRegion* region : regions) shadow.remove(region);
  }
  print_message("%zu KiB: %lld ns among 1 region, %lld ns among 5001\n", kPages * kPage / 1024,
                static_cast<long long>(few), static_cast<long long>(many));
  assert_true(many < 4 * few);
}

// ---- Regions that are registered and deregistered ----

void remove__shadow_is_gone(void**) {
  ShadowRegion* region = add(0, kPage);
  shadow.remove(region);
  const ShadowTotals before = shadow.totals();
  assert_int_equal(shadow.num_regions(), 0);
  assert_int_equal(shadow.num_pages(), 0);
  program[0] = 200;
  shadow.clean_invalidate(at(0), kPages * kPage);
  assert_int_equal(program[0], 200);
  assert_int_equal(shadow.totals().moved_lines, before.moved_lines);
  assert_int_equal(shadow.totals().needless_lines, before.needless_lines);
}

// The test acts like a registration cache, which does not release registrations in the order in which it made them.
void remove__regions_that_come_again_lie_in_one_piece(void**) {
  const size_t before = num_maps();
  const size_t count = std::min(kPages, ShadowPages::kChunk / 2 / kPage);
  std::vector<ShadowRegion*> parts(count);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < count; ++i) parts[i] = add(i * kPage, kPage);
    for (size_t i = 0; i < count; ++i) shadow.remove(parts[count - 1 - (i * 7) % count]);
  }
  ShadowRegion* region = add(0, count * kPage);
  // The region's view, and the bookkeeping of each two megabytes.
  assert_true(num_maps() <= before + 6);
  shadow.remove(region);
  assert_int_equal(shadow.num_pages(), 0);
}

void remove__late_sync_brings_the_devices_lines(void**) {
  ShadowRegion* region = add(0, 2 * kPage);
  memset(seen(region, 256), 9, 100);
  *seen(region, kPage + 5) = 9;
  shadow.remove(region);
  assert_int_equal(shadow.num_pages(), 2);
  shadow.clean_invalidate(at(0), 2 * kPage);
  assert_int_equal(program[256], 9);
  assert_int_equal(program[355], 9);
  assert_int_equal(program[kPage + 5], 9);
  assert_int_equal(shadow.num_pages(), 0);
  shadow.tell_all();
  assert_int_equal(told.size(), 0);
}

void remove__lines_that_nobody_syncs_are_told_of_at_the_end(void**) {
  ShadowRegion* region = add(64, 2 * kPage);
  *seen(region, 70) = 99;
  *seen(region, kPage + 70) = 99;
  shadow.remove(region);
  assert_int_equal(told.size(), 0);
  shadow.clean_invalidate(at(70), 1);
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unsynced.count, 1);
  assert_int_equal(told[0].unsynced.first, at(kPage + 64));
  shadow.clean_invalidate(at(kPage + 64), 1);
}

void remove__memory_that_is_registered_anew_has_a_new_shadow(void**) {
  ShadowRegion* region = add(0, 2 * kPage);
  memset(seen(region, 128), 99, 65);
  *seen(region, kPage) = 99;
  shadow.remove(region);
  program[128] = 55;  // it has another use now
  ShadowRegion* next = add(100, 500);
  assert_int_equal(*seen(next, 128), 55);
  assert_int_not_equal(*seen(next, 129), 99);
  shadow.clean_invalidate(at(0), kPage);
  assert_int_equal(program[128], 55);
  assert_int_equal(told.size(), 0);  // a page of it still waits
  shadow.remove(next);
  next = add(kPage, 10);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].address, at(0));
  assert_int_equal(told[0].unsynced.count, 3);
  assert_int_equal(told[0].unsynced.first, at(128));
  shadow.remove(next);
  assert_int_equal(shadow.num_pages(), 0);
}

void remove__region_that_the_device_has_refused_ends_no_waiting(void**) {
  shadow.remove(add(0, kPage));
  ShadowRegion* region = add(0, 2 * kPage);
  *seen(region, 128) = 99;
  shadow.remove(region);
  ShadowRegion* refused = nullptr;
  assert_int_equal(shadow.add(at(64), 2 * kPage, false, &refused), 0);
  shadow.remove(refused);
  assert_int_equal(told.size(), 0);
  assert_int_equal(shadow.num_pages(), 1);
  shadow.clean_invalidate(at(128), 1);
  assert_int_equal(program[128], 99);
  assert_int_equal(shadow.num_pages(), 0);
}

// Both wait for the device at the same time; the first that it has registered gets a new shadow.
void remove__memory_that_two_regions_register_anew_has_one_new_shadow(void**) {
  ShadowRegion* region = add(0, kPage);
  *seen(region, 128) = 99;
  shadow.remove(region);
  program[128] = 55;
  ShadowRegion* first = nullptr;
  ShadowRegion* second = nullptr;
  assert_int_equal(shadow.add(at(0), kPage, false, &first), 0);
  assert_int_equal(shadow.add(at(64), kPage, false, &second), 0);
  shadow.registered(first);
  assert_int_equal(told.size(), 1);
  assert_int_equal(*seen(second, 128), 55);
  *seen(first, 256) = 44;
  shadow.registered(second);
  assert_int_equal(told.size(), 1);
  shadow.clean_invalidate(at(256), 1);
  assert_int_equal(program[256], 44);
  shadow.remove(second);
  shadow.remove(first);
  assert_int_equal(shadow.num_pages(), 0);
}

void remove__what_waits_is_bounded(void**) {
  for (size_t i = 0; i < Shadow::kMaxWaitingRegions + 10; ++i) {
    ShadowRegion* region = add(i * 64, 64);
    *seen(region, i * 64) = 0xdd;
    // The same page is used by another region meanwhile, so that it is not allocated anew.
    static ShadowRegion* last = nullptr;
    if (last != nullptr) shadow.remove(last);
    last = region;
    if (i == Shadow::kMaxWaitingRegions + 9) shadow.remove(last), last = nullptr;
  }
  assert_true(told.size() >= 10);
  assert_int_equal(told[0].address, at(0));
  shadow.clean_invalidate(at(0), kPages * kPage);
  assert_int_equal(shadow.num_pages(), 0);
}

void add__memory_that_is_not_there(void**) {
  assert_int_equal(munmap(program + 2 * kPage, kPage), 0);
  ShadowRegion* region = nullptr;
  assert_int_equal(shadow.add(at(kPage), 3 * kPage, false, &region), EFAULT);
  assert_int_equal(shadow.num_regions(), 0);
  // Nothing of it is left.
  assert_int_equal(shadow.num_pages(), 0);
  region = add(kPage, kPage);
  *seen(region, kPage) = 1;
  shadow.clean_invalidate(at(kPage), 1);
  shadow.remove(region);
}

int add_without_memory(uintptr_t address, size_t length) {
  const dapple::soak::MemoryLimit no_more(0);
  ShadowRegion* region = nullptr;
  return shadow.add(address, length, false, &region);
}

void add__without_memory_leaves_the_neighbours_alone(void**) {
  constexpr size_t kChunk = ShadowPages::kChunk;
  void* memory = mmap(nullptr, 3 * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  const uintptr_t boundary = ShadowPages::chunk_of(reinterpret_cast<uintptr_t>(memory)) + 2 * kChunk;
  auto* first = reinterpret_cast<unsigned char*>(boundary);
  memset(first - kPage, 0, 3 * kPage);
  ShadowRegion* region = nullptr;
  assert_int_equal(shadow.add(boundary, kPage, false, &region), 0);
  assert_int_equal(add_without_memory(boundary - kPage, 3 * kPage), ENOMEM);
  assert_int_equal(shadow.num_pages(), kPage / Shadow::kPage);
  region->view[5] = 42;
  shadow.clean_invalidate(boundary, kPage);
  assert_int_equal(first[5], 42);
  shadow.remove(region);
  assert_int_equal(shadow.num_pages(), 0);
  assert_int_equal(munmap(memory, 3 * kChunk), 0);
}

void remove__memory_that_is_gone(void**) {
  ShadowRegion* region = add(kPage, 2 * kPage, true);
  assert_int_equal(munmap(program + kPage, kPage), 0);
  program[2 * kPage] = 200;
  shadow.remove(region);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unclean.count, 1);
}

// ---- Changes by the CPU ----

void unclean__lines_for_peers_that_were_never_synced(void**) {
  ShadowRegion* region = add(0, kPage, true);
  shadow.clean_invalidate(at(0), kPage);  // as at a registration of uDAPL's: nothing moves
  program[130] = 200;
  program[200] = 200;
  shadow.remove(region);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unclean.count, 2);
  assert_int_equal(told[0].unclean.first, at(128));
}

void unclean__not_what_has_been_synced_once(void**) {
  ShadowRegion* region = add(0, kPage, true);
  program[130] = 200;
  shadow.clean(at(130), 1);
  program[130] = 201;  // perhaps the peer has read it
  *seen(region, 300) = 77;
  shadow.clean_invalidate(at(300), 1);
  program[300] = 78;  // received, and changed in place
  shadow.remove(region);
  assert_int_equal(told.size(), 0);
}

void unclean__not_where_no_peer_reads(void**) {
  ShadowRegion* region = add(0, kPage);
  program[130] = 200;
  shadow.remove(region);
  assert_int_equal(told.size(), 0);
}

// The program may have unmapped what it sends.
void findings__none_of_a_region_that_the_device_has_refused(void**) {
  ShadowRegion* region = add(0, 2 * kPage);
  program[64] = 200;
  *seen(region, kPage) = 99;
  ShadowRegion* refused = nullptr;
  assert_int_equal(shadow.add(at(0), 2 * kPage, true, &refused), 0);
  shadow.remove(refused);
  assert_int_equal(told.size(), 0);
  shadow.tell_all();
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].unsynced.count, 1);
  shadow.clean_invalidate(at(0), 2 * kPage);
  shadow.remove(region);
  assert_int_equal(told.size(), 1);
}

void dirty_bytes__of_memory_that_is_gone__none(void**) {
  ShadowRegion* region = add(0, 2 * kPage);
  program[kPage + 5] = 1;
  assert_int_equal(mprotect(program, kPage, PROT_NONE), 0);
  const Tally dirty = shadow.dirty_bytes(at(0), 2 * kPage);
  assert_int_equal(mprotect(program, kPage, PROT_READ | PROT_WRITE), 0);
  assert_int_equal(dirty.count, 1);
  assert_int_equal(dirty.first, at(kPage + 5));
  shadow.clean(at(0), 2 * kPage);
  shadow.remove(region);
}

void dirty_bytes__those_of_the_range(void**) {
  ShadowRegion* region = add(0, 2 * kPage);
  program[kPage - 1] = 200;
  program[kPage] = 200;
  program[kPage + 64] = 200;
  assert_int_equal(shadow.dirty_bytes(at(0), 2 * kPage).count, 3);
  assert_int_equal(shadow.dirty_bytes(at(kPage), 64).count, 1);
  assert_int_equal(shadow.dirty_bytes(at(kPage), 64).first, at(kPage));
  assert_int_equal(shadow.dirty_bytes(at(kPage + 1), 63).count, 0);
  shadow.clean(at(kPage - 1), 2);
  assert_int_equal(shadow.dirty_bytes(at(0), 2 * kPage).count, 1);
  shadow.remove(region);
  assert_int_equal(shadow.dirty_bytes(at(0), 2 * kPage).count, 0);
}

// ---- Other threads at the same time ----

void* come_and_go(void* offset) {
  while (!over) {
    ShadowRegion* region = nullptr;
    if (shadow.add(at(reinterpret_cast<uintptr_t>(offset)), 3 * kPage, true, &region) != 0) return offset;
    shadow.registered(region);
    *seen(region, reinterpret_cast<uintptr_t>(offset)) += 1;
    shadow.remove(region);
  }
  return nullptr;
}

void tell_all__beside_regions_that_come_and_go(void**) {
  pthread_t threads[3];
  over = false;
  for (size_t i = 0; i < 3; ++i) {
    assert_int_equal(pthread_create(&threads[i], nullptr, come_and_go, reinterpret_cast<void*>(4 * i * kPage)), 0);
  }
  for (int i = 0; i < 300; ++i) {
    shadow.tell_all();
    shadow.clean_invalidate(at(0), kPages * kPage);
  }
  over = true;
  for (size_t i = 0; i < 3; ++i) {
    void* failed = program;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  shadow.clean_invalidate(at(0), kPages * kPage);
  assert_int_equal(shadow.num_pages(), 0);
}

void fork__child_leaves_the_parents_shadow_alone(void**) {
  ShadowRegion* region = add(0, kPage);
  const pid_t child = fork();
  if (child == 0) {
    program[0] = 123;
    shadow.clean_invalidate(at(0), kPage);
    ShadowRegion* more = nullptr;
    _exit(shadow.add(at(kPage), kPage, false, &more) == EOPNOTSUPP ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_not_equal(*seen(region, 0), 123);
  shadow.remove(region);
}

// ---- Kernels with larger pages ----

void pages_of_64_kib__every_mapping_begins_and_ends_with_one(void**) {
  constexpr size_t kLarge = 65536;
  Shadow of_large;
  assert_null(of_large.open(tell, kLarge));
  // Such a kernel maps a whole page or nothing.
  const uintptr_t first = (at(0) + kLarge - 1) & ~(kLarge - 1);
  ShadowRegion* region = nullptr;
  assert_int_equal(of_large.add(first + 5000, 100, false, &region), 0);
  of_large.registered(region);
  assert_int_equal(of_large.num_pages(), kLarge / Shadow::kPage);
  assert_int_equal(reinterpret_cast<uintptr_t>(region->view - 5000) % Shadow::kPage, 0);
  auto* memory = reinterpret_cast<unsigned char*>(first);
  assert_memory_equal(region->view - 5000, memory, kLarge);
  memory[5000] = 201;
  of_large.clean(first + 5000, 1);
  assert_int_equal(region->view[0], 201);
  of_large.remove(region);
  assert_int_equal(of_large.num_pages(), 0);
}

}  // namespace

int main() {
#define SHADOW_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const CMUnitTest tests[] = {
      SHADOW_TEST(add__device_sees_the_programs_data),
      SHADOW_TEST(nothing_moves_without_a_sync),
      SHADOW_TEST(clean__whole_lines_of_the_cpu_reach_the_device),
      SHADOW_TEST(clean_invalidate__brings_the_devices_lines),
      SHADOW_TEST(clean_invalidate__dirty_line_overwrites_the_devices),
      SHADOW_TEST(clean__names_the_region_that_lost_bytes),
      SHADOW_TEST(unsynced__not_those_of_a_neighbour),
      SHADOW_TEST(overlapping_regions_share_a_page),
      SHADOW_TEST(clean__two_owners_of_halves_lose_nothing),
      SHADOW_TEST(sync__needless_is_counted),
      SHADOW_TEST(sync__needless_of_the_first_line_is_told),
      SHADOW_TEST(sync__moved_is_counted),
      SHADOW_TEST(sync__costs_the_same_among_many_regions),
      SHADOW_TEST(remove__shadow_is_gone),
      SHADOW_TEST(remove__regions_that_come_again_lie_in_one_piece),
      SHADOW_TEST(remove__late_sync_brings_the_devices_lines),
      SHADOW_TEST(remove__lines_that_nobody_syncs_are_told_of_at_the_end),
      SHADOW_TEST(remove__memory_that_is_registered_anew_has_a_new_shadow),
      SHADOW_TEST(remove__region_that_the_device_has_refused_ends_no_waiting),
      SHADOW_TEST(remove__memory_that_two_regions_register_anew_has_one_new_shadow),
      SHADOW_TEST(remove__what_waits_is_bounded),
      SHADOW_TEST(add__memory_that_is_not_there),
      SHADOW_TEST(add__without_memory_leaves_the_neighbours_alone),
      SHADOW_TEST(remove__memory_that_is_gone),
      SHADOW_TEST(unclean__lines_for_peers_that_were_never_synced),
      SHADOW_TEST(unclean__not_what_has_been_synced_once),
      SHADOW_TEST(unclean__not_where_no_peer_reads),
      SHADOW_TEST(findings__none_of_a_region_that_the_device_has_refused),
      SHADOW_TEST(dirty_bytes__of_memory_that_is_gone__none),
      SHADOW_TEST(dirty_bytes__those_of_the_range),
      SHADOW_TEST(tell_all__beside_regions_that_come_and_go),
      SHADOW_TEST(fork__child_leaves_the_parents_shadow_alone),
      SHADOW_TEST(pages_of_64_kib__every_mapping_begins_and_ends_with_one),
  };
  return cmocka_run_group_tests(tests, open_shadow, nullptr);
}

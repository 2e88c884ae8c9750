// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/mapped_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::MappedMemory;

constexpr size_t kSize = size_t{1} << 16;  // at least a page on all machines

std::byte* map(int flags, int file) {
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags, file, 0);
  assert_true(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

std::byte* map_private() {
  return map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

// Kernels before 5.14 tell only whether memory is mapped.
void skip_without_populate(std::byte* memory) {
  constexpr int kPopulateRead = 22;
  if (madvise(memory, kSize, kPopulateRead) != 0) skip();
}

void has__unmapped_memory__is_seen_after_forget(void**) {
  MappedMemory mapped;
  mapped.remember();
  std::byte* memory = map_private();
  for (int i = 0; i < 2; i++) assert_true(mapped.has(memory, kSize, true));
  munmap(memory, kSize);
  mapped.forget();
  assert_false(mapped.has(memory, kSize, false));
}

void has__memory_without_the_right__is_seen_after_forget(void**) {
  MappedMemory mapped;
  mapped.remember();
  std::byte* memory = map_private();
  skip_without_populate(memory);
  assert_true(mapped.has(memory, kSize, true));
  mprotect(memory, kSize, PROT_READ);
  mapped.forget();
  for (int i = 0; i < 2; i++) {
    assert_true(mapped.has(memory, kSize, false));
    assert_false(mapped.has(memory, kSize, true));
  }
  munmap(memory, kSize);
}

void is_plain__other_rights_or_shared__is_false(void**) {
  MappedMemory mapped;
  std::byte* memory = map_private();
  assert_false(mapped.is_plain(memory, kSize));
  mapped.remember();
  assert_true(mapped.is_plain(memory, kSize));
  for (const int rights : {PROT_READ, PROT_READ | PROT_WRITE | PROT_EXEC}) {
    if (mprotect(memory, kSize, rights) != 0) continue;  // a hardened kernel
    mapped.forget();
    assert_false(mapped.is_plain(memory, kSize));
  }
  munmap(memory, kSize);
  std::byte* shared = map(MAP_SHARED | MAP_ANONYMOUS, -1);
  assert_false(mapped.is_plain(shared, kSize));
  munmap(shared, kSize);
}

// As the C library does with the stack of a thread. The clock that decides has a step of some milliseconds.
void has__unmapped_memory__is_seen_some_time_later(void**) {
  MappedMemory mapped;
  mapped.remember();
  std::byte* memory = map_private();
  assert_true(mapped.has(memory, kSize, true));
  munmap(memory, kSize);
  bool is_seen = false;
  for (int i = 0; i < 1000 && !is_seen; i++) {
    usleep(10'000);
    is_seen = !mapped.has(memory, kSize, true);
  }
  assert_true(is_seen);
}

// Another process, or another mapping, can do this. Nobody calls forget() then.
void has__file_that_is_cut__is_looked_at_each_time(void**) {
  MappedMemory mapped;
  mapped.remember();
  const int file = memfd_create("mapped", MFD_CLOEXEC);
  assert_true(file >= 0 && ftruncate(file, kSize) == 0);
  std::byte* memory = map(MAP_SHARED, file);
  skip_without_populate(memory);
  for (int i = 0; i < 2; i++) assert_true(mapped.has(memory, kSize, true));
  assert_int_equal(ftruncate(file, 0), 0);
  assert_false(mapped.has(memory, kSize, false));
  munmap(memory, kSize);
  close(file);
}

void has__nothing_remembered__looks_each_time(void**) {
  MappedMemory mapped;
  std::byte* memory = map_private();
  assert_true(mapped.has(memory, kSize, true));
  munmap(memory, kSize);
  assert_false(mapped.has(memory, kSize, false));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(has__unmapped_memory__is_seen_after_forget),
      cmocka_unit_test(is_plain__other_rights_or_shared__is_false),
      cmocka_unit_test(has__unmapped_memory__is_seen_some_time_later),
      cmocka_unit_test(has__memory_without_the_right__is_seen_after_forget),
      cmocka_unit_test(has__file_that_is_cut__is_looked_at_each_time),
      cmocka_unit_test(has__nothing_remembered__looks_each_time),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

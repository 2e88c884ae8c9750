// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Copies to a process by its number: whole or not at all, and never to another program that has the number. The targets
// are this program again, which executes itself over and over while others write to its memory.
#include "provider/soft/placement/guarded_process.hpp"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

// Each program maps its memory there.
constexpr uint64_t kAddress = 0x7E9000000000;
constexpr size_t kSize = 64 * 1024;
constexpr int kPrograms = 300;
constexpr unsigned kLife = 500;  // microseconds that a program lets others write
constexpr int kLooks = 20;       // at its memory
constexpr uint8_t kByte = 0x5A;

char name_of_this_program[4096];

std::byte* memory() {
  return reinterpret_cast<std::byte*>(kAddress);
}

bool map_memory() {
  return mmap(memory(), kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory();
}

// What a program tells the test.
struct Report {
  Guard guard;
  uint64_t foreign_bytes;  // that it has found, written for another program
};

// A program that has `left` successors in the same process. `guarded`: it has a guard page of its own; otherwise the
// guard page is in memory that all of them map.
int be_target(int output, int left, bool guarded) {
  if (!map_memory()) return 2;
  Report report = {};
  for (int look = 0; look < kLooks; look++) {
    report.foreign_bytes += static_cast<uint64_t>(std::count(memory(), memory() + kSize, std::byte{kByte}));
    usleep(kLife / kLooks);
  }
  memset(memory(), 0, kSize);
  GuardPage page;
  if (guarded && !page.map()) return 77;
  report.guard = page.guard();
  if (!guarded) report.guard = {kAddress, 0};
  if (write(output, &report, sizeof report) != sizeof report) return 3;
  if (left == 0) return 0;
  usleep(kLife);
  char numbers[2][16];
  snprintf(numbers[0], sizeof numbers[0], "%d", output);
  snprintf(numbers[1], sizeof numbers[1], "%d", left - 1);
  execl(name_of_this_program, name_of_this_program, numbers[0], numbers[1], guarded ? "guarded" : "", nullptr);
  return 4;
}

// Writes to a process all the time, whatever program it executes, behind the guard page of one of them. It goes on
// after calls that have failed, unlike GuardedProcess.
class Hammer {
 public:
  Hammer(pid_t process, const Guard& guard) : process_(process), guard_(guard) {
    pthread_create(&thread_, nullptr, run, this);
  }
  // Returns the number of whole copies.
  uint64_t end() {
    stop_ = true;
    pthread_join(thread_, nullptr);
    return copies_;
  }

 private:
  static void* run(void* self) {
    static_cast<Hammer*>(self)->write_always();
    return nullptr;
  }
  void write_always() {
    static std::byte bytes[kSize];
    memset(bytes, kByte, sizeof bytes);
    uint64_t word = 0;
    const iovec sources[] = {{&word, sizeof word}, {bytes, kSize}};
    const iovec targets[] = {{reinterpret_cast<void*>(guard_.address + 8), sizeof word}, {memory(), kSize}};
    while (!stop_) {
      const int64_t copied = syscall(SYS_process_vm_writev, process_, sources, 2, targets, 2, 0ul);
      if (copied == static_cast<int64_t>(sizeof word + kSize)) copies_++;
    }
  }

  const pid_t process_;
  const Guard guard_;
  std::atomic<bool> stop_{false};
  uint64_t copies_ = 0;
  pthread_t thread_{};
};

struct Outcome {
  int status = 0;
  int programs = 0;
  uint64_t copies = 0;
  uint64_t foreign_bytes = 0;
};

Outcome hammer_programs(bool guarded) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(be_target(ends[1], kPrograms, guarded));
  }
  close(ends[1]);
  Outcome outcome;
  Report report;
  bool any = read(ends[0], &report, sizeof report) == sizeof report;
  while (any) {
    outcome.foreign_bytes += report.foreign_bytes;
    outcome.programs++;
    Hammer hammer(child, report.guard);
    // Until the next program has looked at its memory, or the last one has ended.
    any = read(ends[0], &report, sizeof report) == sizeof report;
    outcome.copies += hammer.end();
  }
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  return outcome;
}

bool read_from(GuardedProcess& peer, uint64_t address, std::byte* to, size_t size) {
  const GuardedProcess::Piece piece = {address, to, size};
  return peer.read({&piece, 1});
}

bool allowed() {
  GuardPage page;
  GuardedProcess self;
  if (page.map()) self.open(getpid(), page.guard());
  return self.usable();
}

void write__process_executes_another_program__no_byte_of_the_data(void**) {
  const Outcome outcome = hammer_programs(true);
  assert_true(WIFEXITED(outcome.status));
  assert_int_equal(WEXITSTATUS(outcome.status), 0);
  assert_int_equal(outcome.programs, kPrograms + 1);
  assert_true(outcome.copies > 0);
  assert_int_equal(outcome.foreign_bytes, 0);
}

// The same without a guard page of its own: else the test above would prove nothing.
void write__guard_is_mapped_by_all_programs__bytes_arrive(void**) {
  const Outcome outcome = hammer_programs(false);
  assert_int_equal(outcome.programs, kPrograms + 1);
  assert_true(outcome.foreign_bytes > 0);
}

// A process that maps memory, tells of its guard page, and waits for its end.
struct Target {
  pid_t process = 0;
  Guard guard = {};

  Target() {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    process = fork();
    if (process == 0) {
      GuardPage page;
      if (!map_memory() || !page.map()) _exit(1);
      memset(memory(), 1, kSize);
      if (write(ends[1], &page.guard(), sizeof(Guard)) != sizeof(Guard)) _exit(2);
      for (;;) pause();
    }
    close(ends[1]);
    if (read(ends[0], &guard, sizeof guard) != sizeof guard) guard = {};
    close(ends[0]);
  }
  ~Target() { end(); }
  void end() {
    if (process == 0) return;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    process = 0;
  }
};

void write_and_read__another_process__copy(void**) {
  const Target target;
  GuardedProcess peer;
  peer.open(target.process, target.guard);
  assert_true(peer.usable());
  static std::byte from[kSize], to[kSize];
  for (size_t i = 0; i < kSize; i++) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const size_t size : {size_t{1}, size_t{4}, size_t{8}, size_t{13}, size_t{4096}, kSize - 16}) {
    assert_true(peer.write(kAddress + 8, from, size));
    memset(to, 0, sizeof to);
    assert_true(read_from(peer, kAddress + 8, to, size));
    assert_memory_equal(to, from, size);
    assert_true(size == kSize || to[size] == std::byte{0});
  }
}

void write_and_read__memory_is_not_there__fail_and_the_process_stays(void**) {
  const Target target;
  GuardedProcess peer;
  static std::byte bytes[kSize];
  peer.open(target.process, target.guard);
  assert_false(peer.write(kAddress + kSize / 2, bytes, kSize));
  assert_false(read_from(peer, kAddress + kSize / 2, bytes, kSize));
  assert_true(peer.usable());
}

void write_and_read__process_has_ended__fail_for_ever(void**) {
  for (const bool writes : {true, false}) {
    Target target;
    GuardedProcess peer;
    std::byte bytes[8] = {};
    peer.open(target.process, target.guard);
    assert_true(peer.usable());
    target.end();
    assert_false(writes ? peer.write(kAddress, bytes, sizeof bytes) : read_from(peer, kAddress, bytes, sizeof bytes));
    assert_false(peer.usable());
  }
}

void open__another_nonce_or_process__unusable(void**) {
  const Target target;
  for (int i = 0; i < 4; i++) {
    Guard guard = target.guard;
    if (i == 0) guard.nonce++;
    if (i == 1) guard.address = 0;
    if (i == 2) guard.address += 1 << 20;
    GuardedProcess peer;
    peer.open(i == 3 ? getpid() : target.process, guard);
    assert_false(peer.usable());
  }
  GuardedProcess peer;
  peer.open(0, target.guard);
  assert_false(peer.usable());
}

void map__twice__other_addresses_that_a_child_lacks(void**) {
  GuardPage first, second;
  assert_true(first.map() && second.map());
  const Guard guard = first.guard();
  assert_true(guard.address != second.guard().address);
  assert_int_equal(*reinterpret_cast<const uint64_t*>(guard.address), guard.nonce);
  const pid_t child = fork();
  if (child == 0) {
    unsigned char resident;
    _exit(mincore(reinterpret_cast<void*>(guard.address), 1, &resident) == 0 || errno != ENOMEM ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (readlink("/proc/self/exe", name_of_this_program, sizeof name_of_this_program - 1) < 0) return 1;
  if (count == 4) return be_target(atoi(arguments[1]), atoi(arguments[2]), arguments[3][0] != '\0');
  if (!allowed()) {
    puts("SKIP: the system lets no process write to another one by its number");
    return 77;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(write__process_executes_another_program__no_byte_of_the_data),
      cmocka_unit_test(write__guard_is_mapped_by_all_programs__bytes_arrive),
      cmocka_unit_test(write_and_read__another_process__copy),
      cmocka_unit_test(write_and_read__memory_is_not_there__fail_and_the_process_stays),
      cmocka_unit_test(write_and_read__process_has_ended__fail_for_ever),
      cmocka_unit_test(open__another_nonce_or_process__unusable),
      cmocka_unit_test(map__twice__other_addresses_that_a_child_lacks),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

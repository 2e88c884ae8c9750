// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's findings under dapple-run --check reach the check, however the process ends.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <atomic>

#include "provider/common/settings.hpp"
#include "provider/emulator/shadow/finding.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/emulated_child.hpp"

using namespace dapple::provider;

namespace {

void exit_in_handler(int) {
  exit(0);
}

void show(const CheckFinding& finding, void (*)()) {
  dprintf(STDERR_FILENO, "shown %s: %s %d at %s\n", finding.kind, finding.text, finding.num_places,
          finding.places[0].title);
  if (finding.num_places != 1 || finding.places[0].stack.count < 2) _exit(104);
}

void leave_a_line_unsynced() {
  static_cast<ShadowRegion*>(register_memory(0, kLength))->view[100] = 1;
}

void leave_a_finding() {
  leave_a_line_unsynced();
  Emulator::running()->shadow().tell_all();
}

void exit__shows_to_the_check(void**) {
  const auto work = [] {
    leave_a_line_unsynced();
    exit(0);
  };
  assert_int_equal(status_of(work, show), 0);
  assert_non_null(strstr(said, "shown missing-sync: region "));
  assert_non_null(strstr(said, "never synced, the first at offset 64. 1 at registered\n"));
}

void deregistration__shows_to_the_check(void**) {
  const auto work = [] {
    auto* region = static_cast<ShadowRegion*>(register_memory(0, kLength));
    region->view[100] = 1;
    memory[101] = 1;
    Emulator::running()->shadow().clean(reinterpret_cast<uintptr_t>(memory), kLength);
    Emulator::running()->deregistered(region);
    _exit(0);
  };
  assert_int_equal(status_of(work, show), 0);
  assert_non_null(strstr(said, "shown missing-sync: region "));
  assert_non_null(strstr(said, "lost to the write-back"));
}

void reregistration__refused_by_the_device_changes_no_access(void**) {
  const auto work = [] {
    Emulator* emulator = Emulator::running();
    void* state = register_memory(0, kLength);
    memory[100] = 1;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    if (emulator->before_reregistration(IBV_REREG_MR_CHANGE_ACCESS, access, state) != 0) _exit(104);
    emulator->deregistered(state);
    state = register_memory(0, kLength);
    memory[100] = 2;
    if (emulator->before_reregistration(IBV_REREG_MR_CHANGE_ACCESS, access, state) != 0) _exit(105);
    emulator->access_changed(access, state);
    dprintf(STDERR_FILENO, "until now\n");
    emulator->deregistered(state);
    _exit(0);
  };
  assert_int_equal(status_of(work, show), 0);
  assert_int_equal(strncmp(said, "until now\nshown missing-sync: region ", 37), 0);
  assert_non_null(strstr(said, "never synced for the peers"));
}

// Regions that are registered in one place differ less than those of two places.
[[gnu::noinline]] void* register_here(size_t offset) {
  return register_memory(offset, 4096);
}

[[gnu::noinline]] void* register_there(size_t offset) {
  return register_memory(offset, 4096);
}

void change_on_both_sides(void* state) {
  auto* region = static_cast<ShadowRegion*>(state);
  region->view[100] = 1;
  reinterpret_cast<unsigned char*>(region->address)[101] = 1;
  Emulator::running()->shadow().clean(region->address, region->length);
}

void repeats__hide_no_other_finding(void**) {
  const auto work = [] {
    void* states[100];
    for (size_t i = 0; i < 100; ++i) {
      asm volatile("" : "+r"(i));  // so that the compiler does not unroll the loop: each call has one place
      states[i] = i < 99 ? register_here(i * 4096) : register_there(i * 4096);
    }
    for (void* state : states) change_on_both_sides(state);
    for (void* state : states) Emulator::running()->deregistered(state);
    _exit(0);
  };
  assert_int_equal(status_of(work, show), 0);
  int count = 0;
  for (const char* at = said; (at = strstr(at, "shown missing-sync")) != nullptr; ++at) ++count;
  if (count != 2) fail_msg("%d findings are shown: %s", count, said);
}

// The handler may have interrupted malloc(), for example.
void exit__in_a_handler__does_not_ask_the_check(void**) {
  const auto work = [] {
    leave_a_line_unsynced();
    signal(SIGALRM, exit_in_handler);
    raise(SIGALRM);
  };
  assert_int_equal(status_of(work, show), 0);
  assert_null(strstr(said, "shown"));
  assert_non_null(strstr(said, "dapple: error: missing-sync: region "));
}

std::atomic<bool> is_showing;

void show_slowly(const CheckFinding& finding, void (*before_halt)()) {
  is_showing = true;
  usleep(100'000);
  show(finding, before_halt);
}

void show_what_waits() {
  leave_a_finding();
  pthread_t thread;
  const auto show_it = [](void*) -> void* {
    show_findings(nullptr);
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, show_it, nullptr) != 0 || pthread_detach(thread) != 0) _exit(103);
  while (!is_showing) usleep(100);
}

void exit__waits_for_a_finding_that_is_being_shown(void**) {
  const auto work = [] {
    show_what_waits();
    exit(0);
  };
  assert_int_equal(status_of(work, show_slowly), 0);
  assert_non_null(strstr(said, "shown missing-sync: region "));
}

template <int kNumber>
void end_with_a_finding_that_waits() {
  leave_a_finding();
  if (kNumber == SIGABRT) abort();
  if (kNumber == SIGSEGV) {
    munmap(memory, kLength);
    memory[0] = 1;
  }
  raise(kNumber);
}

void crash__writes_what_waits(void**) {
  const auto ends_with = [](int number, int status) {
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
    assert_null(strstr(said, "shown"));
    assert_non_null(strstr(said, "dapple: error: missing-sync: region "));
  };
  ends_with(SIGABRT, status_of(end_with_a_finding_that_waits<SIGABRT>, show));
  ends_with(SIGPIPE, status_of(end_with_a_finding_that_waits<SIGPIPE>, show));
  ends_with(SIGSEGV, status_of(end_with_a_finding_that_waits<SIGSEGV>, show));
}

void halt__is_announced(void**) {
  const auto halt = [](const CheckFinding&, void (*before_halt)()) {
    if (before_halt == nullptr) return;
    before_halt();
    _exit(66);
  };
  char name[] = "/tmp/dapple-notes-XXXXXX";
  const int file = mkstemp(name);
  assert_true(file >= 0);
  setenv("DAPPLE_CHECK_LOG", name, 1);
  read_settings_again();
  const auto deregister = [] {
    void* state = register_memory(0, 4096);
    change_on_both_sides(state);
    Emulator::running()->deregistered(state);
  };
  const int status = status_of(deregister, halt);
  const auto leave = [] {
    leave_a_line_unsynced();
    exit(5);
  };
  const int status_at_exit = status_of(leave, halt);
  unsetenv("DAPPLE_CHECK_LOG");
  read_settings_again();
  unlink(name);
  char notes[256] = "";
  assert_true(pread(file, notes, sizeof notes - 1, 0) > 0);
  close(file);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 66);
  assert_true(WIFEXITED(status_at_exit) && WEXITSTATUS(status_at_exit) == 5);
  int begins = 0, ends = 0;
  for (const char* at = notes; (at = strstr(at, "begin ")) != nullptr; ++at) ++begins;
  for (const char* at = notes; (at = strstr(at, "end ")) != nullptr; ++at) ++ends;
  assert_int_equal(begins, 2);
  assert_int_equal(ends, 2);
}

void fork__leaves_findings_to_the_parent(void**) {
  const auto work = [] {
    leave_a_finding();
    const pid_t child = fork();
    if (child == 0) {
      show_findings(nullptr);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    show_findings(nullptr);
    _exit(0);
  };
  assert_int_equal(status_of(work, show), 0);
  const char* first = strstr(said, "shown");
  assert_non_null(first);
  assert_null(strstr(first + 1, "shown"));
}

// The handler must not allocate memory, so the check is not asked.
void signal__writes_without_the_check(void**) {
  char name[] = "/tmp/dapple-records-XXXXXX";
  const int file = mkstemp(name);
  assert_true(file >= 0);
  setenv("DAPPLE_CHECK_RECORDS", name, 1);
  read_settings_again();
  const auto work = [] {
    leave_a_line_unsynced();
    raise(SIGTERM);
  };
  const int status = status_of(work, show);
  unsetenv("DAPPLE_CHECK_RECORDS");
  read_settings_again();
  unlink(name);
  char record[1024] = "";
  assert_true(pread(file, record, sizeof record - 1, 0) > 0);
  close(file);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  assert_null(strstr(said, "shown"));
  assert_non_null(strstr(said, "dapple: error: missing-sync: region "));
  assert_non_null(strstr(record, "{\"kind\":\"missing-sync\",\"level\":\"error\",\"process\":"));
  assert_non_null(strstr(record, "at offset 64.\",\"remedy\":\"Sync for the CPU"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(exit__shows_to_the_check),
      cmocka_unit_test(deregistration__shows_to_the_check),
      cmocka_unit_test(reregistration__refused_by_the_device_changes_no_access),
      cmocka_unit_test(repeats__hide_no_other_finding),
      cmocka_unit_test(exit__in_a_handler__does_not_ask_the_check),
      cmocka_unit_test(exit__waits_for_a_finding_that_is_being_shown),
      cmocka_unit_test(crash__writes_what_waits),
      cmocka_unit_test(halt__is_announced),
      cmocka_unit_test(fork__leaves_findings_to_the_parent),
      cmocka_unit_test(signal__writes_without_the_check),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Challenges, and the memory of other processes: of those that the kernel shows, and of those that it does not.
#include "provider/soft/proof/process_memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr Parties kParties = {.target_slot = 3, .peer_slot = 4};
constexpr uid_t kUser = 4711;

// The words of the seal, as its reference has them: 16 bytes in a row.
void seal_of__known_key_and_words__as_in_the_reference(void**) {
  const Secret key = {{0x0706050403020100, 0x0F0E0D0C0B0A0908}};
  const Parties parties = {.target_slot = 0x0B0A0908, .peer_slot = 0x0F0E0D0C};
  assert_int_equal(seal_of(key, 0x0706050403020100, parties), 0x3F2ACC7F57C29BDB);
}

void make__until_there_is_no_room__secrets_differ_and_end(void**) {
  Challenges challenges;
  assert_true(challenges.open());
  Challenge first = {}, next = {};
  assert_int_equal(challenges.make(kParties, first), 1);
  const Secret answer = *reinterpret_cast<const Secret*>(first.address);
  assert_int_equal(seal_of(answer, first.address, kParties), first.seal);
  for (uint32_t number = 2; number <= 255; number++) {
    assert_int_equal(challenges.make(kParties, next), number);
    assert_true(next.address != first.address && next.seal != first.seal);
  }
  assert_int_equal(challenges.make(kParties, next), 0);
  assert_true(challenges.end(1, answer));
  // The secret is gone, and the next one is another.
  assert_int_equal(reinterpret_cast<const Secret*>(first.address)->words[0], 0);
  assert_int_equal(challenges.make(kParties, next), 1);
  assert_false(challenges.end(1, answer));
}

// A process that shows a challenge, and waits for its end.
struct Target {
  pid_t process = 0;
  Challenge challenge = {};

  enum class Kind { kPlain, kMainThreadEnds, kNotDumpable };

  explicit Target(Kind kind, uid_t uid = 0) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (uid != 0 && (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0)) _exit(1);
      // The kernel makes a process not dumpable that changes its user.
      prctl(PR_SET_DUMPABLE, kind != Kind::kNotDumpable);
      be(kind, ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &challenge, sizeof challenge) != sizeof challenge) challenge = {};
    if (kind == Kind::kMainThreadEnds) await_end_of_main_thread();
    close(ends[0]);
  }
  ~Target() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }

 private:
  [[noreturn]] static void be(Kind kind, int output) {
    static int written_to = output;
    if (kind == Kind::kMainThreadEnds) {
      pthread_t thread;
      pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            show(written_to);
            for (;;) pause();
          },
          nullptr);
      pthread_exit(nullptr);
    }
    show(output);
    for (;;) pause();
  }
  static void show(int output) {
    static Challenges challenges;
    Challenge made = {};
    if (!challenges.open() || challenges.make(kParties, made) == 0) _exit(2);
    if (write(output, &made, sizeof made) != sizeof made) _exit(3);
  }
  void await_end_of_main_thread() const {
    char name[64], text[256] = {};
    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", process, process);
    for (int i = 0; i < 5000; i++) {
      const int file = open(name, O_RDONLY | O_CLOEXEC);
      const ssize_t size = read(file, text, sizeof text - 1);
      close(file);
      const char* state = size > 0 ? strrchr(text, ')') : nullptr;
      if (state != nullptr && state[2] == 'Z') return;
      usleep(1000);
    }
  }
};

Right open_memory(const Target& target, const Parties& parties, OwnedFd& memory, Secret& secret) {
  return open_process_memory(target.process, target.challenge, parties, memory, secret);
}

void open__another_process__its_memory_and_its_secret(void**) {
  const Target target(Target::Kind::kPlain);
  OwnedFd memory;
  Secret secret = {}, read = {};
  assert_int_equal(open_memory(target, kParties, memory, secret), Right::kGranted);
  assert_int_equal(pread(memory.get(), &read, sizeof read, static_cast<off_t>(target.challenge.address)), sizeof read);
  assert_memory_equal(&read, &secret, sizeof secret);
  assert_int_equal(seal_of(secret, target.challenge.address, kParties), target.challenge.seal);
}

void open__main_thread_has_ended__the_memory_of_another_thread(void**) {
  const Target target(Target::Kind::kMainThreadEnds);
  OwnedFd memory;
  Secret secret = {};
  assert_int_equal(open_memory(target, kParties, memory, secret), Right::kGranted);
  assert_true(static_cast<bool>(memory));
}

// A challenge that was made for others, and processes that are not the one of the challenge.
void open__not_the_right_memory__nothing(void**) {
  const Target target(Target::Kind::kPlain);
  const Target other(Target::Kind::kPlain);
  OwnedFd memory;
  Secret secret = {};
  assert_int_equal(open_memory(target, {4, 3}, memory, secret), Right::kOtherMemory);
  assert_int_equal(open_process_memory(other.process, target.challenge, kParties, memory, secret), Right::kOtherMemory);
  assert_int_equal(open_process_memory(0, target.challenge, kParties, memory, secret), Right::kNotVisible);
  assert_int_equal(open_process_memory(INT32_MAX, target.challenge, kParties, memory, secret), Right::kNoFile);
  for (const uint64_t address : {uint64_t{0}, uint64_t{1} << 62, UINT64_MAX}) {
    const Challenge wrong = {address, target.challenge.seal};
    assert_int_equal(open_process_memory(target.process, wrong, kParties, memory, secret), Right::kOtherMemory);
  }
  assert_false(static_cast<bool>(memory));
  assert_int_equal(secret.words[0], 0);
}

void open__no_descriptor_is_left__says_so(void**) {
  const Target target(Target::Kind::kPlain);
  rlimit limit = {}, none = {};
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none.rlim_max = limit.rlim_max;
  OwnedFd memory;
  Secret secret = {};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Right right = open_memory(target, kParties, memory, secret);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_int_equal(right, Right::kPeerLacks);
}

// A process of the same user, which the kernel lets nobody without privileges trace.
void open__not_dumpable__refused(void**) {
  if (geteuid() != 0) skip();
  const Target shown(Target::Kind::kPlain, kUser), hidden(Target::Kind::kNotDumpable, kUser);
  const pid_t child = fork();
  if (child == 0) {
    OwnedFd memory;
    Secret secret = {};
    if (setgroups(0, nullptr) != 0 || setgid(kUser) != 0 || setuid(kUser) != 0) _exit(1);
    // Yama may forbid it, too.
    const Right of_shown = open_memory(shown, kParties, memory, secret);
    if (of_shown != Right::kGranted && of_shown != Right::kRefused) _exit(2);
    _exit(open_memory(hidden, kParties, memory, secret) == Right::kRefused ? 0 : 3);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

void may_have__addresses_of_programs__false(void**) {
  int here = 0;
  static int there = 0;
  RandomPage page;
  assert_false(RandomPage::may_have(0));
  assert_false(RandomPage::may_have(reinterpret_cast<uintptr_t>(&here)));
  assert_false(RandomPage::may_have(reinterpret_cast<uintptr_t>(&there)));
  assert_false(RandomPage::may_have(UINT64_MAX));
  if (page.map()) assert_true(RandomPage::may_have(page.address()));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(seal_of__known_key_and_words__as_in_the_reference),
      cmocka_unit_test(make__until_there_is_no_room__secrets_differ_and_end),
      cmocka_unit_test(open__another_process__its_memory_and_its_secret),
      cmocka_unit_test(open__main_thread_has_ended__the_memory_of_another_thread),
      cmocka_unit_test(open__not_the_right_memory__nothing),
      cmocka_unit_test(open__no_descriptor_is_left__says_so),
      cmocka_unit_test(open__not_dumpable__refused),
      cmocka_unit_test(may_have__addresses_of_programs__false),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Forks while threads are inside the registry: the child may be refused, but does not hang.
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/fork_in_handler.hpp"
#include "tests/unit/udapl-registry/pause.hpp"
#include "tests/unit/udapl-registry/registry_rig.hpp"

namespace {

constexpr DAT_RETURN kInvalidState = DAT_CLASS_ERROR | DAT_INVALID_STATE;

/// Runs the body in a child, where its checks must hold, for at most 20 seconds.
template <class Body>
void check_in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    failed_checks = 0;
    body();
    ::_exit(failed_checks == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQUAL(::waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

struct TwoProviders {
  FakeLog a{}, b{};
  Dat dat{line("a", a) + line("b", b, FAKE_PROVIDER_B)};
};

void check_opens_and_closes(Dat& dat, const char* name) {
  DAT_IA_HANDLE ia = nullptr;
  DAT_COUNT count = 0;
  CHECK_EQUAL(dat.list_providers(0, &count, nullptr), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(dat.open(name, &ia), kSuccess);
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void fork__child_of_an_idle_registry_uses_it() {
  TwoProviders two;
  // clang 14 captures no structured bindings.
  [[maybe_unused]] FakeLog &a = two.a, &b = two.b;
  Dat& dat = two.dat;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("a", &ia), kSuccess);
  check_in_child([&] {
    check_opens_and_closes(dat, "b");
    std::thread([&] { check_opens_and_closes(dat, "a"); }).join();
    check_in_child([&] { check_opens_and_closes(dat, "b"); });
    CHECK_EQUAL(dat.close(ia), kSuccess);
    CHECK_EQUAL(a.finis, 1);
  });
  check_opens_and_closes(dat, "b");
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void fork__child_beside_a_thread_that_loads_is_refused() {
  TwoProviders two;
  [[maybe_unused]] FakeLog &a = two.a, &b = two.b;
  Dat& dat = two.dat;
  DAT_IA_HANDLE ia_a = nullptr, ia_b = nullptr;
  CHECK_EQUAL(dat.open("b", &ia_b), kSuccess);
  Pause pause;
  a.in_init = pause.hook();
  DAT_RETURN opened = DAT_NOT_IMPLEMENTED;
  std::thread opener([&] { opened = dat.open("a", &ia_a); });
  pause.wait_until_reached();
  check_in_child([&] {
    DAT_IA_HANDLE ia = nullptr;
    DAT_COUNT count = 0;
    DAT_HA_RELATIONSHIP answer = DAT_HA_UNKNOWN;
    char name_a[] = "a", name_b[] = "b";
    CapturedStderr captured;
    CHECK_EQUAL(dat.open("b", &ia), kInvalidState);
    CHECK(captured.text().starts_with("dat: this process was forked while "));
    CHECK_EQUAL(dat.list_providers(0, &count, nullptr), kInvalidState);
    CHECK_EQUAL(dat.providers_related(name_a, name_b, &answer), kInvalidState);
    check_in_child([&] { CHECK_EQUAL(dat.open("b", &ia), kInvalidState); });
    CHECK_EQUAL(dat.close(ia_b), kInvalidState);
    CHECK_EQUAL(b.closes, 0);
    CHECK_EQUAL(b.finis, 0);
  });
  // The fork waits for no thread. The best of many times, so that other programs on the machine do not matter.
  auto shortest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 300 && shortest >= std::chrono::milliseconds(90); i++) {
    const auto begun = std::chrono::steady_clock::now();
    check_in_child([] {});
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begun);
  }
  CHECK(shortest < std::chrono::milliseconds(90));
  pause.end();
  opener.join();
  CHECK_EQUAL(opened, kSuccess);
  CHECK_EQUAL(dat.close(ia_a), kSuccess);
  CHECK_EQUAL(dat.close(ia_b), kSuccess);
}

void fork__child_closes_what_a_thread_of_the_parent_asks() {
  TwoProviders two;
  [[maybe_unused]] FakeLog &a = two.a, &b = two.b;
  Dat& dat = two.dat;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("a", &ia), kSuccess);
  Pause pause;
  a.in_related = pause.hook();
  std::thread asker([&] {
    char name_a[] = "a", name_b[] = "b";
    DAT_HA_RELATIONSHIP answer = DAT_HA_UNKNOWN;
    dat.providers_related(name_a, name_b, &answer);
  });
  pause.wait_until_reached();
  check_in_child([&] { CHECK_EQUAL(dat.close(ia), kSuccess); });
  pause.end();
  asker.join();
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void fork__in_the_midst_of_loading_both_go_on() {
  TwoProviders two;
  [[maybe_unused]] FakeLog &a = two.a, &b = two.b;
  Dat& dat = two.dat;
  static pid_t child;
  a.in_init = {[](void*) {
                 child = ::fork();
                 if (child == 0) ::alarm(20);
               },
               nullptr};
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("a", &ia), kSuccess);
  check_opens_and_closes(dat, "b");
  CHECK_EQUAL(dat.close(ia), kSuccess);
  if (child == 0) ::_exit(failed_checks == 0 ? 0 : 1);
  int status = -1;
  CHECK_EQUAL(::waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

void fork__in_a_signal_handler_of_a_call() {
  TwoProviders two;
  [[maybe_unused]] FakeLog &a = two.a, &b = two.b;
  Dat& dat = two.dat;
  ::alarm(60);
  struct sigaction action {};
  action.sa_handler = fork_in_a_handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  ::setitimer(ITIMER_PROF, &often, nullptr);
  while (forks_in_handlers < 200) check_opens_and_closes(dat, "a");
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
  check_opens_and_closes(dat, "b");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(fork__child_of_an_idle_registry_uses_it),
      TEST_IN_CHILD(fork__child_beside_a_thread_that_loads_is_refused),
      TEST_IN_CHILD(fork__child_closes_what_a_thread_of_the_parent_asks),
      TEST_IN_CHILD(fork__in_the_midst_of_loading_both_go_on),
      TEST_IN_CHILD(fork__in_a_signal_handler_of_a_call),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

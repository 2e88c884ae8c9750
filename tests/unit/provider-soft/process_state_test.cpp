// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/process_state.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

namespace {

// A child that runs `what` until it is killed, under a name like the ones that are hard to parse.
class Child {
 public:
  explicit Child(void (*what)()) : process_(fork()) {
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, ") S (");
    for (;;) what();
  }
  ~Child() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  bool is_kept_waiting() const { return dapple::soft::is_kept_waiting(process_); }
  // Waits until the state is the expected one, for 10 s at most.
  bool becomes(bool kept_waiting) const {
    for (int i = 0; i < 10'000 && is_kept_waiting() != kept_waiting; i++) usleep(1000);
    return is_kept_waiting() == kept_waiting;
  }

 private:
  pid_t process_;
};

void is_kept_waiting__runs_or_sleeps_or_is_stopped__only_the_first(void**) {
  const Child sleeps([] { pause(); });
  assert_true(sleeps.becomes(false));
  // A loop without an effect would be undefined.
  const Child runs([] { (void)getppid(); });
  assert_true(runs.becomes(true));
  const Child stops([] { raise(SIGSTOP); });
  assert_true(stops.becomes(false));
}

void is_kept_waiting__no_process__no(void**) {
  assert_false(dapple::soft::is_kept_waiting(0));
  assert_false(dapple::soft::is_kept_waiting(-1));
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test(is_kept_waiting__runs_or_sleeps_or_is_stopped__only_the_first),
      cmocka_unit_test(is_kept_waiting__no_process__no),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}

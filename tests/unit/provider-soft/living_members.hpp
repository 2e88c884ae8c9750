// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Members of a shared XRC domain that live and answer nothing: a child has the locks on their bytes.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

class LivingMembers {
 public:
  // `memory` is the domain's.
  LivingMembers(int memory, uint32_t first, uint32_t count) {
    int ready[2];
    assert_return_code(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_start = first;
      lock.l_len = count;
      const char done = 0;
      if (fcntl(memory, F_SETLK, &lock) == 0 && write(ready[1], &done, 1) == 1) pause();
      _exit(1);
    }
    char done = 0;
    close(ready[1]);
    assert_int_equal(read(ready[0], &done, 1), 1);
    close(ready[0]);
  }
  ~LivingMembers() { end(); }
  LivingMembers(const LivingMembers&) = delete;
  LivingMembers& operator=(const LivingMembers&) = delete;

  // They die.
  void end() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
};

}  // namespace dapple::tests

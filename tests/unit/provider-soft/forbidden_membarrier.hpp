// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider/soft/locks/heavy_barrier.hpp"
#include "tests/native/clock.hpp"
#include "tests/unit/provider/refused_call.hpp"

// Forbids the program membarrier(), if DAPPLE_TEST_NO_MEMBARRIER is "always", or "later": after the program has
// prepared its heavy barriers. Call it first. False, and a line on standard error, if the device does not notice it.
inline bool forbid_membarrier_if_wanted() {
  using namespace dapple;
  const char* when = getenv("DAPPLE_TEST_NO_MEMBARRIER");
  if (when == nullptr) return true;
  const bool later = strcmp(when, "later") == 0;
  if (later) soft::prepare_heavy_barriers();
  if (!tests::refuse_call(SYS_membarrier, EPERM)) {
    printf("SKIP: the kernel has no filter for system calls: %s\n", strerror(errno));
    fflush(stdout);
    _exit(77);
  }
  soft::prepare_heavy_barriers();
  bool notices = soft::have_heavy_barriers() == later;
  if (later) {
    // Without the kernel's help, a heavy barrier waits until every CPU has carried out its stores.
    const double before = tests::now();
    soft::heavy_barrier();
    notices = notices && tests::now() - before >= 0.001;
  }
  if (!notices) fprintf(stderr, "the device counts on membarrier()\n");
  return notices;
}

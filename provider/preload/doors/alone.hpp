// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>
#include <signal.h>

#include "provider/member/undisturbed.hpp"

namespace dapple::doors {

// While one exists, this thread gets no pthread_cancel() and no signal handler that may use a device file: both would
// find the locks of the connection to dappled taken. At its end errno is restored.
class Alone {
 public:
  Alone() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~Alone() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  const soft::Undisturbed undisturbed_;
  sigset_t before_;
};

}  // namespace dapple::doors

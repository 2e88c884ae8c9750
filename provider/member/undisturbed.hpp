// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>

#include "provider/common/keep_errno.hpp"

namespace dapple::soft {

// While one exists, a pthread_cancel() of this thread waits: verbs are not cancellation points, and must not leave a
// lock held. At its end errno is restored.
class Undisturbed {
 public:
  Undisturbed() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  ~Undisturbed() { pthread_setcancelstate(state_, nullptr); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  const provider::KeepErrno errno_;
  int state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace dapple::soft

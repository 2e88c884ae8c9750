// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The descriptor by which threads wake the background thread.
#pragma once

#include "provider/system/problem.hpp"

namespace dapple::soft {

// wake() is for any thread.
class Wakeup {
 public:
  Wakeup() = default;
  ~Wakeup() { close(); }
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // False on failure, and `problem` has the reason.
  bool open(Problem& problem);
  // Does nothing in the background thread, which looks at all work before it sleeps.
  void wake() const;
  // To poll.
  int fd() const { return fd_; }
  // After fd() was readable.
  void woken() const;
  // Also in a child of fork().
  void close();

  // From now on the calling thread is the background thread.
  static void this_is_background();
  static bool is_background();

 private:
  int fd_ = -1;
};

}  // namespace dapple::soft

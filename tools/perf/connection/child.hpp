// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace dapple::perf {

// The other side of a run on one machine: a child process, which ends with its parent. Create it before the parent
// opens a device.
class Child {
 public:
  // body: runs in the child; its argument is a function that sends the parent a line. false means failure.
  explicit Child(const std::function<bool(const std::function<void(const std::string&)>& tell)>& body);
  // Kills the child if it has not ended.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the line; throws Failure if the child ends without one.
  std::string await_line();
  // Throws Failure if the child did not succeed.
  void await_end();

 private:
  pid_t pid_ = -1;
  int read_ = -1;
};

}  // namespace dapple::perf

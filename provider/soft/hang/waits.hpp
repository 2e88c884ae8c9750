// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The wait of a stopped thread, by its stack and the arguments of its system call.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "provider/soft/hang/threads/thread_stacks.hpp"
#include "provider/soft/hang/view.hpp"

namespace dapple::soft::hang {

struct Wait {
  std::string function;          // the outermost one of libibverbs or librdmacm; empty: none
  std::string system_function;   // the C library's one, such as "poll"; empty: not known
  std::vector<int> descriptors;  // to be readable; empty: none, or not known
  std::vector<const ibv_cq*> polled;

  bool destroys() const { return function.find("destroy") != function.npos; }
};

Wait wait_of(const ThreadStack& thread, const View& view);

}  // namespace dapple::soft::hang

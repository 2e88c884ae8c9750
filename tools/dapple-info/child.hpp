// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <functional>
#include <string>

namespace dapple::info {

// The result of a child process.
struct ChildResult {
  std::string out;      // the child's answer
  std::string err;      // the child's output on standard error
  std::string failure;  // a description, if it crashed or did not end in time; otherwise empty
};

// Runs body in a child process, so that a foreign library that crashes, hangs or exits does not harm this process. body
// writes its answer to a descriptor. The answer is cut at 64 KiB.
ChildResult run_in_child(const std::function<void(int out)>& body, int timeout_ms);

}  // namespace dapple::info

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dapple::soft {

// The process has no CPU at present, or waits for the kernel or a disk. It is not stopped, and waits for no other
// program. False if the process is not visible. Async-signal-safe.
bool is_kept_waiting(pid_t process);
// The same for a process or a thread, by the text of its file `stat` in /proc.
bool is_kept_waiting(std::string_view stat);

}  // namespace dapple::soft

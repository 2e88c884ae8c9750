// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The file of another process' memory, which the kernel opens for a process that may trace the other one.
#pragma once

#include <sys/types.h>

#include "provider/soft/proof/challenges.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Opens the memory of the process with this number in this process' PID namespace, to read and to write, if the secret
// of the challenge is there. Returns kGranted and the secret, or the reason. The file stays that of the memory until
// the process ends or executes another program; then the kernel reads and writes nothing.
Right open_process_memory(pid_t process, const Challenge& challenge, const Parties& parties, OwnedFd& memory,
                          Secret& secret);

}  // namespace dapple::soft

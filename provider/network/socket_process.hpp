// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

namespace dapple::soft {

struct SocketProcess {
  pid_t process = 0;  // 0: not visible
  char program[32] = "";
};

// A process that holds the socket with this inode number, as far as this process may see others' descriptors.
SocketProcess find_socket_process(unsigned long inode);

// The program's name, empty if it is not visible.
void name_program(pid_t process, char (&program)[32]);

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The process that holds an abstract name of this network namespace. Any process may take any of these names.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "provider/network/socket_process.hpp"

namespace dapple::soft {

struct NameHolder : SocketProcess {
  bool found = false;
  bool knows_uid = false;
  uid_t uid = 0;
};

// The holder of a name by a socket of this type (SOCK_SEQPACKET, ...), as far as the kernel tells it.
NameHolder find_name_holder(const char* name, int type);

// The holder as the subject of a sentence: "Process 7 (nc) of user 1000", "A program of user 1000", "Another program".
void name_holder(const NameHolder& holder, char* text, size_t size);

}  // namespace dapple::soft

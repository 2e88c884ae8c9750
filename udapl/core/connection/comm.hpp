// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transport of a common connection, in the words of socket(2).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

namespace dapple::udapl {

struct Comm {
  int domain = AF_UNSPEC;
  int type = SOCK_STREAM;
  int protocol = IPPROTO_TCP;
  friend bool operator==(const Comm&, const Comm&) = default;
};

// rdma_cm has one port space for connections, named after TCP; a stream socket stands for it. Both ends of a connection
// have the IA's address family.
inline bool is_supported(const Comm& comm, int ia_family) {
  return comm.domain == ia_family && comm.type == SOCK_STREAM && (comm.protocol == 0 || comm.protocol == IPPROTO_TCP);
}

}  // namespace dapple::udapl

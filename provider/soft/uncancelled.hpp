// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// recvmmsg() and sendmmsg() that are not cancellation points. In a program with threads, the C library's functions need
// two more atomic operations: a sixth of the time of a look at an empty socket.
#ifndef DAPPLE_PROVIDER_SOFT_UNCANCELLED_HPP
#define DAPPLE_PROVIDER_SOFT_UNCANCELLED_HPP

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dapple::soft {

inline int receive_datagrams(int socket, mmsghdr* messages, unsigned count) {
  return static_cast<int>(syscall(SYS_recvmmsg, socket, messages, count, MSG_DONTWAIT, nullptr));
}

inline int send_datagrams(int socket, mmsghdr* messages, unsigned count) {
  return static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_UNCANCELLED_HPP

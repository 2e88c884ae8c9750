// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// recvmmsg() and sendmmsg() that are not cancellation points. In a program with threads, the C library's functions need
// two more atomic operations: a sixth of the time of a look at an empty socket. For one message the kernel does less in
// recvmsg() and sendmsg().
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dapple::soft {

// The results are recvmmsg()'s.
inline int receive_datagrams(int socket, mmsghdr* messages, unsigned count) {
  if (count == 1) {
    const long size = syscall(SYS_recvmsg, socket, &messages->msg_hdr, MSG_DONTWAIT);
    if (size >= 0) messages->msg_len = static_cast<unsigned>(size);
    return size < 0 ? -1 : 1;
  }
  return static_cast<int>(syscall(SYS_recvmmsg, socket, messages, count, MSG_DONTWAIT, nullptr));
}

inline int send_datagrams(int socket, mmsghdr* messages, unsigned count) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (count == 1) return syscall(SYS_sendmsg, socket, &messages->msg_hdr, kFlags) < 0 ? -1 : 1;
  return static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, kFlags));
}

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// NETLINK_RDMA: the kernel's answers, if it has any, and then ours.
//
// A program that asks for such a socket gets one of NETLINK_USERSOCK, which every kernel has. A request goes to the
// kernel over a NETLINK_RDMA socket of our own; the answers are sent into the program's socket, so the C library and
// the kernel handle waiting and reading.
#pragma once

#include <stddef.h>
#include <sys/socket.h>

namespace dapple::doors {

// socket(AF_NETLINK, type, NETLINK_RDMA).
int netlink_socket(int type);

// Answers the requests that a program sends over such a socket. 0, or -1 with errno.
int netlink_request(int fd, const void* bytes, size_t size);

}  // namespace dapple::doors

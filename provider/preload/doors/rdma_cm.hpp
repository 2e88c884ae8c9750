// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open /dev/infiniband/rdma_cm, which connects librdmacm with the kernel; here it connects librdmacm with dappled
// (cm_messages.hpp). The descriptor is one end of a pair of sockets, so the kernel handles poll(), O_NONBLOCK, dup()
// and fork().
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "provider/preload/doors/process/descriptors.hpp"

namespace dapple::doors {

// open(). The descriptor is always close-on-exec: a channel does not survive exec().
int rdma_cm_open(int flags);

// write(): one command. Checks as the kernel does; a bad pointer is EFAULT. Only GET_EVENT waits, and it is a
// cancellation point only while it waits. A thread's first command may allocate memory.
//
// `door` may come from find_unchecked(). kNoDoor: the descriptor is another file's by now, and nothing has happened.
inline constexpr ssize_t kNoDoor = -2;
ssize_t rdma_cm_write(int fd, const Door& door, const void* bytes, size_t size);

// Around a fork(): no thread is in the middle of an event.
void hold_events();
void release_events();

}  // namespace dapple::doors

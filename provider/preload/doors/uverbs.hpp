// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests of a program to an open /dev/infiniband/uverbsN, as the kernel's uverbs would get them.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace dapple::doors {

// write(): one command. libibverbs itself sends only the command that makes a completion channel.
ssize_t uverbs_write(const void* bytes, size_t size);

int uverbs_ioctl(int fd, uint32_t device, unsigned long request, void* argument);

// As in Doors (provider/system/doors.hpp).
bool answer_async_fd(int cmd_fd, int async_fd);

}  // namespace dapple::doors

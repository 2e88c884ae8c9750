// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory of a dma-buf, whose ownership the kernel passes between the CPU and the attached devices.
#pragma once

#include "provider/device/sync.hpp"

namespace dapple::provider {

bool is_dmabuf(int fd);

// Passes the whole buffer on by DMA_BUF_IOCTL_SYNC: ends the CPU's access before the device's access, or begins the
// CPU's access after the device's. Returns 0, or the errno value of the ioctl; does not change errno. May wait for the
// device's work on the buffer, if the kernel knows of it (a GPU's).
int sync_dmabuf(int fd, SyncDirection direction) noexcept;

}  // namespace dapple::provider

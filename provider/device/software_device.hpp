// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Finds out whether an RDMA device is a program. If it is, the CPU does its copying, and CPU and device cannot
// disagree.
#pragma once

namespace dapple::provider {

// True if the device behind the command file belongs to rxe, siw or dapple's own driver. False if the file is not a
// uverbs file, or if the kernel has no ioctl for such files.
//
// The kernel refuses an ioctl that names another driver than the device's, so a query that is harmless for every device
// shows the driver, without trust in names, vendor numbers or sysfs: a device that sysfs shows without hardware need
// not be a program, and older kernels show siw's network card as its hardware.
bool kernel_says_software_driver(int cmd_fd);

}  // namespace dapple::provider

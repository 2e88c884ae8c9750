// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Is an RDMA device a program? Then the CPU does its copying, and CPU and device cannot disagree.
#ifndef DAPPLE_PROVIDER_SOFTWARE_DEVICE_HPP
#define DAPPLE_PROVIDER_SOFTWARE_DEVICE_HPP

#include <infiniband/verbs.h>

namespace dapple::provider {

// True if sysfs shows the device (its directory under class/infiniband) and no piece of hardware that it belongs to: no
// "device" link. So look rxe and siw on today's kernels, and dapple's own device. A directory that is not there (device
// renamed or gone, sysfs not mounted, path empty) says nothing: false.
bool sysfs_shows_no_hardware(const char* ibdev_path);

// True if the kernel says that the device behind the command file belongs to rxe or siw. Needed beside sysfs because
// older kernels show siw's network card as its hardware, and because a renamed device is not found there any more.
// False for what is no uverbs file, or a kernel that knows no ioctl there.
//
// The kernel refuses an ioctl that names another driver than the device's, so a query that is harmless everywhere tells
// the driver, without trust in names or vendor numbers.
bool kernel_says_software_driver(int cmd_fd);

// Both of sysfs and the kernel. False means "not known to be one".
bool is_software_device(const ibv_context& context);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_SOFTWARE_DEVICE_HPP

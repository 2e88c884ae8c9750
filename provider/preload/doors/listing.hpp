// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Finds the libibverbs that lists devices. A libibverbs does so over a netlink socket, before it looks for drivers. Old
// ones list the folder /sys/class/infiniband_verbs.
#pragma once

namespace dapple::doors {

// As in Doors (provider/system/doors.hpp).
void when_listing(void (*function)(const void* in_verbs_library));

// A program opens a netlink socket for RDMA, or that folder. If a libibverbs.so does so, it gets the plug-in's driver,
// or a line says why it cannot have it.
void listing_begins();

// Tells whether a path that a program opens to list it may be that folder.
bool lists_devices(const char* path);

// A program asks over such a socket for the file of a device of ours, and looks at the file. Any program may do one or
// the other. If the same code does one after the other, and belongs to no libibverbs.so, it is a libibverbs inside the
// program, which never loads our driver: the second function prints a line.
void device_file_asked();
void device_file_seen();

}  // namespace dapple::doors

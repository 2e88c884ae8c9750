// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The present devices, from dappled; the first question connects to it. Internally locked; blocks until dappled
// answers.
#pragma once

#include <stdint.h>

#include "provider/protocol/messages.hpp"

namespace dapple::doors {

// No device, and once a line on standard error, if dappled cannot be reached.
uint32_t list_devices(uint32_t (&indexes)[soft::kMaxDevices]);

// False with errno: ENODEV if the device does not exist (any more), or the reason why dappled cannot be asked.
bool get_device(uint32_t index, soft::DeviceInfo& device);

// "dapple0"; the name need not end with a NUL.
bool get_device_named(const char* name, size_t size, soft::DeviceInfo& device);

}  // namespace dapple::doors

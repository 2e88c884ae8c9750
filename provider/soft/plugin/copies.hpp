// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The copies of libibverbs in this process that have our driver. The system's copy is libibverbs.so.1. A Python wheel
// brings a copy of its own under another name. Each copy has its own release, private functions, and list of drivers.
#pragma once

#include <stddef.h>

#include <atomic>

#include "provider/private_api/library.hpp"
#include "provider/soft/abi/structures.hpp"

namespace dapple::soft::abi {

// libibverbs' private functions, besides verbs_set_ops().
struct PrivateFunctions {
  void (*register_driver)(const DeviceOperations* operations);
  void* (*init_and_alloc_context)(ibv_device* device, int cmd_fd, size_t size, verbs_context* offset, uint32_t driver);
  void (*uninit_context)(verbs_context* context);
};

// One copy. The rest is written once, by the thread that took the place, before the copy knows of the driver.
struct VerbsCopy {
  std::atomic<void*> handle = nullptr;  // null: a free place. The copy stays loaded
  provider::VerbsLibrary library;
  PrivateFunctions functions = {};
  bool has_wr_flush = false;
  DeviceOperations driver = {};
};

// Registers the driver with the libibverbs that contains the address, or with libibverbs.so.1 if that is null, unless
// it has the driver. Prints a line if that is not possible. A copy calls this, by way of us, under its own lock; two
// copies may do so at the same time. Takes the loader's lock.
void register_with(const void* in_verbs_library, const DeviceOperations& driver);

// The copy of a device that the driver has made.
const VerbsCopy& copy_of(const ibv_device* device);

}  // namespace dapple::soft::abi

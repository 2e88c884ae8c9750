// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The location of an RDMA device's hardware in sysfs.
#pragma once

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

struct DeviceLocation {
  Path hardware;      // the folder of the device's "device" link, resolved; empty if it was not found
  Path pci_function;  // the PCI function that contains the hardware; empty if there is none
  Path host_bridge;   // "pci0000:00" above pci_function; empty if there is none
};

// ibdev: the device's folder below class/infiniband.
DeviceLocation find_device(const Path& ibdev);

}  // namespace dapple::provider

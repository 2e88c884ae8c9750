// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The firmware's description of a device's DMA, as the kernel reads it.
#pragma once

#include "provider/device/machine/device_location.hpp"
#include "provider/device/machine/files.hpp"

namespace dapple::provider {

enum class Firmware {
  kUnreadable,   // the description cannot be read here, or the device's hardware was not found
  kNone,         // the device is in no description
  kAcpi,         // ACPI describes it; only root may read its _CCA, which has the answer
  kNoProperty,   // the devicetree describes it and says nothing about coherence
  kCoherent,     // ... says dma-coherent
  kNoncoherent,  // ... says dma-noncoherent
};

// root: "" for this machine, else the folder that holds another one's sys and proc.
//
// As in the kernel, a PCI device is described by the node of its host bridge's parent. Any other device is described by
// its own node, or by the node of the nearest device above it. From there upwards the nearest dma-coherent or
// dma-noncoherent counts; dma-coherent counts if a node has both. If a node's interconnect-names contain "dma-mem", the
// next node upwards is that interconnect; otherwise it is the parent.
Firmware read_firmware(const Path& root, const DeviceLocation& location);

}  // namespace dapple::provider

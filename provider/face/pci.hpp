// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The PCI function of a device whose identity has one.
#pragma once

#include <string>

#include "provider/face/tree.hpp"
#include "provider/protocol/device_attributes.hpp"

namespace dapple::face {

struct ShownDevice;

std::string function_name(const soft::DeviceAttributes& attributes);  // "0000:3b:00.0"
std::string function_folder(
    const soft::DeviceAttributes& attributes);  // "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

// The function's folder, the port above it, and their places in /sys/bus/pci.
void add_function(Tree& tree, const soft::DeviceAttributes& attributes);
// The files of the function's folder, without links to other folders.
void add_function_files(Tree& tree, const std::string& folder, const soft::DeviceAttributes& attributes);
// The netdev as the function's: sys/class/net/IF, whose other entries are the real ones.
void add_netdev(Tree& tree, const ShownDevice& device);

}  // namespace dapple::face

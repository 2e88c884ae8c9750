// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A flattened devicetree as files: a folder for each node, a file for each property, numbers in big-endian.
#pragma once

#include <string_view>

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

enum class DmaProperty { kUnreadable, kNone, kCoherent, kNoncoherent };

// The nearest dma-coherent or dma-noncoherent from the node upwards. tree: the root node's folder, resolved. node:
// "/soc/pcie@40000000"; empty for the root node.
//
// Reads a bounded number of files in any tree; a longer walk is kUnreadable.
DmaProperty find_dma_property(const Path& tree, std::string_view node);

}  // namespace dapple::provider

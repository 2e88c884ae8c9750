// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The permissions of a PCIe function for relaxed ordering and no-snoop, from its configuration space.
#pragma once

#include <infiniband/dappledv.h>

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

struct PciOrdering {
  dappledv_answer relaxed_ordering = DAPPLEDV_ANSWER_UNKNOWN;
  dappledv_answer no_snoop = DAPPLEDV_ANSWER_UNKNOWN;
};

// size: the number of readable bytes, at most 4096. Without privileges these are 64 bytes, which do not include the
// answer: unknown.
PciOrdering parse_pci_config(const uint8_t* config, size_t size);

// Reads a PCI function's folder in sysfs. A virtual function has no setting of its own: the physical function's is
// read.
PciOrdering read_pci_ordering(const Path& function);

}  // namespace dapple::provider

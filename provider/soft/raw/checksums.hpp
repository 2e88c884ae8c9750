// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The checksums of IPv4, TCP and UDP in a frame, as NICs compute them for programs (RFC 1071).
#pragma once

#include <cstddef>
#include <span>

#include "provider/soft/raw/frame.hpp"

namespace dapple::soft {

// Tells whether this is TCP or UDP over IPv4 with good checksums. UDP may have none.
bool has_good_checksums(const Frame& frame);

// Writes the checksums that the frame's headers have. `bytes`: those of the frame. Other frames stay as they are.
void complete_checksums(std::span<std::byte> bytes);
// Writes the checksum that the kernel has left to a NIC: that of all bytes from `start` on. Its field is `offset`
// behind `start` and has the sum of the pseudo-header. The CRC of SCTP stays open.
void complete_open_checksum(std::span<std::byte> bytes, size_t start, size_t offset);

}  // namespace dapple::soft

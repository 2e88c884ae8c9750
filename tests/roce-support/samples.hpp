// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One packet of every kind, each field with a value of its own.
#pragma once

#include <vector>

#include "roce/packet/packet.hpp"
#include "tests/roce-support/frame.hpp"

namespace dapple::roce::test {

// All opcodes that opcode_info() knows, in their order.
std::vector<uint8_t> known_opcodes();

// The fields that the opcode has; the others keep their initial values.
Headers sample_headers(uint8_t opcode);

// `size` bytes that count up; none, or eight, if the opcode requires it.
Bytes sample_payload(uint8_t opcode, size_t size);

// True if both have the same values in the headers of `opcode`. The pad counts.
bool same_headers(const Headers& a, const Headers& b);

}  // namespace dapple::roce::test

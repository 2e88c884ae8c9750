// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The features of a peer and a connection, with the reason for each answer.
#pragma once

#include <librpma.h>

#include <cstdint>

namespace dapple::rpma {

struct Answer {
  bool has = false;
  const char* reason = nullptr;  // text for the user; static
};

// Reads DAPPLE_RPMA_NATIVE from the environment: false if it forbids native operations. An unknown word is logged and
// ignored.
bool native_allowed() noexcept;

}  // namespace dapple::rpma

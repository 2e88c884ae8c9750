// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/protocol/transport.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

// kSharedMemory if the kernel delivers packets of this path to this network namespace itself, where a slot's name leads
// to its owner. Else the reason for UDP. Asks the kernel for its route, unless both addresses are the same.
Transport delivery(const Path& path);

}  // namespace dapple::soft

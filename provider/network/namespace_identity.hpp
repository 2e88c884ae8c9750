// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// A number of this process' network namespace: the same for each process in it, and different in other namespaces and
// on other hosts. 0 if the system does not distinguish namespaces.
uint64_t namespace_identity();

}  // namespace dapple::soft

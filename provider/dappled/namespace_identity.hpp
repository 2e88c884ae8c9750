// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::dappled {

// A number of this network namespace: the same for each dappled in it, and different in other namespaces and on other
// hosts. It is random if the system does not distinguish namespaces.
uint64_t namespace_identity();

}  // namespace dapple::dappled

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_DAPPLED_NAMESPACE_IDENTITY_HPP
#define DAPPLE_PROVIDER_DAPPLED_NAMESPACE_IDENTITY_HPP

#include <cstdint>

namespace dapple::dappled {

// A number of this network namespace: the same for each dappled in it, another one in each other namespace and on each
// other host. Where the system does not tell namespaces apart it is random.
uint64_t namespace_identity();

}  // namespace dapple::dappled

#endif  // DAPPLE_PROVIDER_DAPPLED_NAMESPACE_IDENTITY_HPP

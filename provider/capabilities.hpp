// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the device itself says it can do.
#ifndef DAPPLE_PROVIDER_CAPABILITIES_HPP
#define DAPPLE_PROVIDER_CAPABILITIES_HPP

#include <infiniband/dappledv.h>

namespace dapple::provider {

// Asks the device. False, and nothing written, if this context cannot ask or the device does not answer.
bool query_capabilities(ibv_context* context, ibv_device_attr_ex& capabilities);

// Fills attr's fields about capabilities; null leaves them unknown.
void fill_capabilities(const ibv_device_attr_ex* capabilities, dappledv_device_attr& attr);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_CAPABILITIES_HPP

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_QUERY_HPP
#define DAPPLE_PROVIDER_QUERY_HPP

#include <infiniband/dappledv.h>

#include "coherence/cache.hpp"

namespace dapple::provider {

// As dappledv_query_device_override(), with what it would ask the machine for as arguments. environment is the value of
// DAPPLE_COHERENCE or null. The complaint about a malformed one is printed once in the life of the process.
int query_device(const coherence::CpuDescription& cpu, const char* environment, ibv_context* context,
                 const char* parameter, dappledv_device_attr* attr) noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_QUERY_HPP

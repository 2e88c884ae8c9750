// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_PERSISTENCE_DOMAIN_HPP
#define DAPPLE_PROVIDER_PERSISTENCE_DOMAIN_HPP

#include <infiniband/dappledv.h>

#include "provider/files.hpp"

namespace dapple::provider {

// Whether what is in the CPU's caches survives a loss of power, by the regions of persistent memory that the kernel
// shows: yes if all of them say cpu_cache, no if one says anything else, unknown if there is none or one says nothing.
dappledv_answer read_persistence_domain(const Path& root);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_PERSISTENCE_DOMAIN_HPP

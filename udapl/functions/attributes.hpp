// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// Each function fills the whole structure and leaves nothing of the memory's earlier contents.
void fill(const Ia& ia, DAT_IA_ATTR& attr);
void fill(const Ia& ia, const DAT_PROVIDER_INFO& info, DAT_PROVIDER_ATTR& attr);

}  // namespace dapple::udapl::functions

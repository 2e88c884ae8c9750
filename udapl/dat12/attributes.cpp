// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/attributes.hpp"

namespace dapple::udapl::functions {

void fill_of_version(const Ia&, DAT_IA_ATTR&) {}
void fill_of_version(const Ia&, DAT_PROVIDER_ATTR&) {}

}  // namespace dapple::udapl::functions

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/attributes.hpp"

namespace dapple::face {

void fill_of_version(const dat::Ia&, DAT_IA_ATTR&) {}
void fill_of_version(const dat::Ia&, DAT_PROVIDER_ATTR&) {}

}  // namespace dapple::face

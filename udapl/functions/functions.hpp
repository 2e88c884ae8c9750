// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions behind the slots of the provider table, declared with the types of the table itself.
#pragma once

#include <type_traits>

#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

#define SLOT(SUBTYPE, NAME) std::remove_pointer_t<decltype(DAT_PROVIDER::NAME##_func)> NAME;
#include "udapl/api/functions.def"

}  // namespace dapple::udapl::functions

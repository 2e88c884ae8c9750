// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cr_reject(Cr& cr) {
  return controlled([&] { return cr.reject({}); });
}

}  // namespace dapple::udapl::functions

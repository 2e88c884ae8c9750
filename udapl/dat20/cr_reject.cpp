// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cr_reject(Cr& cr, DAT_COUNT size, const DAT_PVOID private_data) {
  if (auto status = check_private_data(size, private_data, Cr::kMaxRejectData, DAT_INVALID_ARG2)) return status;
  return controlled([&] { return cr.reject(to_span(private_data, size)); },
                    {{Subtype::kPrivateData, DAT_INVALID_ARG2}});
}

}  // namespace dapple::udapl::functions

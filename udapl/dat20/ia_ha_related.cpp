// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"
#include "udapl/functions/provider.hpp"

namespace dapple::udapl::functions {

// The IAs of one device are related, because a fault of the device affects them all. Only names that this process has
// opened are known here.
DAT_RETURN ia_ha_related(Ia& ia, const DAT_NAME_PTR name, DAT_BOOLEAN* answer) {
  if (!name) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!answer) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return guarded([&] {
    const std::optional<std::string> params = params_of(name);
    if (!params) return error(DAT_MODEL_NOT_SUPPORTED);
    const Result<bool> related = ia.is_on_device_of(*params);
    if (!related) return to_dat(related.error());
    *answer = to_dat(*related);
    return kSuccess;
  });
}

}  // namespace dapple::udapl::functions

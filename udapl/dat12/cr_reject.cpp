// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cr_reject(DAT_CR_HANDLE cr_handle) {
  auto* cr = object_of<Cr>(cr_handle);
  if (!cr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
  return controlled([&] { return cr->reject({}); });
}

}  // namespace dapple::udapl::functions

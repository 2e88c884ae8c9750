// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {

// Null unless it is an EVD of this IA that takes connection requests.
inline Evd* request_evd(DAT_EVD_HANDLE handle, const Ia& ia) {
  auto* evd = find_object<Evd>(handle, ia);
  return evd && evd->has(kEvdCr) ? evd : nullptr;
}

}  // namespace dapple::udapl::functions

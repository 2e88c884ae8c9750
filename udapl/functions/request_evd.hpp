// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::face {

// Null unless it is an EVD of this IA that takes connection requests.
inline dat::Evd* request_evd(DAT_EVD_HANDLE handle, const dat::Ia& ia) {
  auto* evd = argument<dat::Evd>(handle, ia);
  return evd && evd->has(dat::kEvdCr) ? evd : nullptr;
}

}  // namespace dapple::face

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The attributes that exist only in 2.0.
#include "udapl/core/ia/ia.hpp"

#include <dat2/dat_ib_extensions.h>

#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {

void fill_of_version(const Ia& ia, DAT_IA_ATTR& attr) noexcept {
  attr.zb_supported = to_dat(ia.rules().has_zero_based);
  attr.extension_supported = ia.rules().iwarp ? DAT_EXTENSION_NONE : DAT_EXTENSION_IB;
  attr.extension_version = ia.rules().iwarp ? 0 : DAT_IB_EXTENSION_VERSION;
}

void fill_of_version(const Ia& ia, DAT_PROVIDER_ATTR& attr) noexcept {
  attr.rdma_read_lmr_rmr_context_exposure = to_dat(ia.rules().iwarp);
  attr.rmr_scope_supported = !ia.has_type_2_windows()  ? DAT_RMR_SCOPE_PZ
                             : ia.has_type_1_windows() ? DAT_RMR_SCOPE_ANY
                                                       : DAT_RMR_SCOPE_EP;
  attr.is_signal_safe = DAT_FALSE;
  attr.ha_supported = DAT_FALSE;
  attr.ha_loadbalancing = DAT_HA_LB_NONE;
}

}  // namespace dapple::udapl::functions

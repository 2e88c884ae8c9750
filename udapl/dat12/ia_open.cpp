// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/provider.hpp"

namespace dapple::udapl::functions {

// Verbs can switch relaxed ordering off for a region, so a consumer that is not aware of it can always be served.
DAT_RETURN ia_open_thread_safe(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd,
                               DAT_IA_HANDLE* ia_handle, DAT_BOOLEAN ro_aware) {
  return open_ia(name, async_qlen, async_evd, ia_handle,
                 {.thread_safe = true, .relaxed_ordering = ro_aware != DAT_FALSE});
}

DAT_RETURN ia_open_not_thread_safe(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd,
                                   DAT_IA_HANDLE* ia_handle, DAT_BOOLEAN ro_aware) {
  return open_ia(name, async_qlen, async_evd, ia_handle,
                 {.thread_safe = false, .relaxed_ordering = ro_aware != DAT_FALSE});
}

}  // namespace dapple::udapl::functions

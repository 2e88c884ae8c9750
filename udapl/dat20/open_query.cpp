// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/dat20/extensions.hpp"

#include "udapl/functions/functions.hpp"
#include "udapl/functions/provider.hpp"

namespace dapple::udapl::functions {

DAT_RETURN open_query(DAT_NAME_PTR name, va_list args) {
  auto* handle = va_arg(args, DAT_HANDLE*);
  const auto ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
  auto* ia_attr = va_arg(args, DAT_IA_ATTR*);
  const auto provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
  auto* provider_attr = va_arg(args, DAT_PROVIDER_ATTR*);
  if (!handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);

  // Opens as a consumer does that uses the headers' defaults.
  DAT_EVD_HANDLE no_evd = DAT_EVD_OUT_OF_SCOPE;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_RETURN status = open_ia(name, 0, &no_evd, &ia, {.thread_safe = bool{DAT_THREADSAFE}, .relaxed_ordering = false});
  if (status != DAT_SUCCESS) return status;
  auto& opened = *object_of<Ia>(ia);
  status = ia_query(opened, nullptr, ia_mask, ia_attr, provider_mask, provider_attr);
  if (status != DAT_SUCCESS) {
    (void)ia_close(opened, DAT_CLOSE_ABRUPT_FLAG);
    return status;
  }
  *handle = ia;
  return DAT_SUCCESS;
}

DAT_RETURN close_query(DAT_HANDLE handle) {
  Ia* ia = object_of<Ia>(handle);
  // An IA that was opened for use is closed by dat_ia_close, which tells the registry.
  if (!ia || consumer_handle(*ia) != DAT_HANDLE_NULL) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  return ia_close(*ia, DAT_CLOSE_ABRUPT_FLAG);
}

}  // namespace dapple::udapl::functions

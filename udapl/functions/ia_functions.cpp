// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/convert.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/provider.hpp"

namespace dapple::udapl::functions {

DAT_RETURN ia_query(Ia& ia, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr,
                    DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider_attr) {
  if (ia_mask & ~DAT_IA_FIELD_ALL) return wrong_argument(DAT_INVALID_ARG3, "it has bits of no member");
  if (ia_mask && !ia_attr) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  if (provider_mask & ~DAT_PROVIDER_FIELD_ALL) return wrong_argument(DAT_INVALID_ARG5, "it has bits of no member");
  if (provider_mask && !provider_attr) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  if (async_evd) *async_evd = ia.async_evd();
  if (ia_mask) fill(ia, *ia_attr);
  if (provider_mask) fill(ia, info_of(ia.tables().live), *provider_attr);
  return DAT_SUCCESS;
}

DAT_RETURN ia_close(Ia& ia, DAT_CLOSE_FLAGS flags) {
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
    return wrong_argument(DAT_INVALID_ARG2, "it must be DAT_CLOSE_ABRUPT_FLAG or DAT_CLOSE_GRACEFUL_FLAG");
  return guarded([&] { return to_dat(Ia::close(ia, flags == DAT_CLOSE_ABRUPT_FLAG)); });
}

DAT_RETURN set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
  auto* object = static_cast<Object*>(handle);
  object->set_consumer_context(context.as_64);
  return DAT_SUCCESS;
}

DAT_RETURN get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
  if (!context) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  const auto* object = static_cast<const Object*>(handle);
  if (!object->has_consumer_context()) return error(DAT_INVALID_STATE);
  context->as_64 = object->consumer_context();
  return DAT_SUCCESS;
}

DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
  if (!type) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  *type = to_dat(static_cast<const Object*>(handle)->kind());
  return DAT_SUCCESS;
}

DAT_RETURN pz_create(Ia& ia, DAT_PZ_HANDLE* pz_handle) {
  if (!pz_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] { return store(Pz::create(ia), pz_handle); });
}

DAT_RETURN pz_query(Pz& pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
  if (auto status = check_query(mask, DAT_PZ_FIELD_ALL, param)) return status;
  param->ia_handle = consumer_handle(pz.ia());
  return DAT_SUCCESS;
}

DAT_RETURN pz_free(Pz& pz) {
  return controlled([&] { return Pz::free(pz); });
}

}  // namespace dapple::udapl::functions

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {
namespace {

DAT_RETURN create_psp(Ia& ia, uint64_t conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                      DAT_PSP_HANDLE* psp_handle) {
  Evd* evd = find_evd(evd_handle, ia, kEvdCr);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
    return wrong_argument(DAT_INVALID_ARG4, "it must be DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG");
  return controlled(
      [&] { return store(Psp::create(ia, conn_qual, *evd, flags == DAT_PSP_PROVIDER_FLAG), psp_handle); });
}

}  // namespace

DAT_RETURN psp_create(Ia& ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                      DAT_PSP_HANDLE* psp_handle) {
  if (conn_qual == 0) return wrong_argument(DAT_INVALID_ARG2, "no service point can have this qualifier");
  if (!psp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return create_psp(ia, conn_qual, evd_handle, flags, psp_handle);
}

DAT_RETURN psp_create_any(Ia& ia, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                          DAT_PSP_HANDLE* psp_handle) {
  if (!conn_qual) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!psp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  const DAT_RETURN status = create_psp(ia, 0, evd_handle, flags, psp_handle);
  if (status == DAT_SUCCESS) *conn_qual = object_of<Psp>(*psp_handle)->conn_qual();
  return status;
}

DAT_RETURN psp_query(Psp& psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  if (auto status = check_query(mask, DAT_PSP_FIELD_ALL, param)) return status;
  param->ia_handle = consumer_handle(psp.ia());
  param->conn_qual = psp.conn_qual();
  param->evd_handle = &psp.evd();
  param->psp_flags = psp.creates_eps() ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG;
  return DAT_SUCCESS;
}

DAT_RETURN psp_free(Psp& psp) {
  return controlled([&] { return Psp::free(psp); });
}

DAT_RETURN rsp_create(Ia& ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
                      DAT_RSP_HANDLE* rsp_handle) {
  if (conn_qual == 0) return wrong_argument(DAT_INVALID_ARG2, "no service point can have this qualifier");
  Ep* ep = nullptr;
  if (!find_optional(ep_handle, ia, ep)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  Evd* evd = find_evd(evd_handle, ia, kEvdCr);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (!rsp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return controlled([&] { return store(Rsp::create(ia, conn_qual, ep, *evd), rsp_handle); });
}

DAT_RETURN rsp_query(Rsp& rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  if (auto status = check_query(mask, DAT_RSP_FIELD_ALL, param)) return status;
  return controlled([&] {
    param->ia_handle = consumer_handle(rsp.ia());
    param->conn_qual = rsp.conn_qual();
    param->evd_handle = &rsp.evd();
    param->ep_handle = rsp.ep();
    return kSuccess;
  });
}

DAT_RETURN rsp_free(Rsp& rsp) {
  return controlled([&] { return Rsp::free(rsp); });
}

}  // namespace dapple::udapl::functions

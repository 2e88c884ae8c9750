// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/cr.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/psp.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"

namespace dapple::dat20 {
namespace {

using dat::Cr;
using dat::Ia;
using dat::Psp;

DAT_RETURN create_psp(Ia& ia, uint64_t conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags, Psp*& out) {
  auto* evd = argument<dat::Evd>(evd_handle, ia);
  if (!evd || !evd->has(dat::kEvdCr)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (flags == DAT_PSP_PROVIDER_FLAG) return error(DAT_NOT_IMPLEMENTED);
  if (flags != DAT_PSP_CONSUMER_FLAG) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    auto psp = Psp::create(ia, conn_qual, *evd);
    if (!psp) return to_dat(psp.error());
    out = *psp;
    return kSuccess;
  });
}

}  // namespace

DAT_RETURN psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                      DAT_PSP_HANDLE* psp_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (conn_qual == 0) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!psp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  Psp* psp = nullptr;
  const DAT_RETURN status = create_psp(*ia, conn_qual, evd_handle, flags, psp);
  if (status == DAT_SUCCESS) *psp_handle = psp;
  return status;
}

DAT_RETURN psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd_handle,
                          DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* psp_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (!conn_qual) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!psp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  Psp* psp = nullptr;
  const DAT_RETURN status = create_psp(*ia, 0, evd_handle, flags, psp);
  if (status != DAT_SUCCESS) return status;
  *psp_handle = psp;
  *conn_qual = psp->conn_qual();
  return DAT_SUCCESS;
}

DAT_RETURN psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  auto* psp = self<Psp>(psp_handle);
  if (!psp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
  if (mask & ~DAT_PSP_FIELD_ALL) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  param->ia_handle = consumer_handle(psp->ia());
  param->conn_qual = psp->conn_qual();
  param->evd_handle = &psp->evd();
  param->psp_flags = DAT_PSP_CONSUMER_FLAG;
  return DAT_SUCCESS;
}

DAT_RETURN psp_free(DAT_PSP_HANDLE psp_handle) {
  auto* psp = self<Psp>(psp_handle);
  if (!psp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(Psp::free(*psp));
  });
}

DAT_RETURN cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK, DAT_CR_PARAM* param) {
  // Consumers pass the mask of another object here; every field is given whatever it says.
  auto* cr = self<Cr>(cr_handle);
  if (!cr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  param->remote_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(cr->remote_address());
  param->remote_port_qual = cr->remote_port();
  param->private_data_size = static_cast<DAT_COUNT>(cr->private_data().size());
  param->private_data = const_cast<uint8_t*>(cr->private_data().data());
  param->local_ep_handle = DAT_HANDLE_NULL;
  return DAT_SUCCESS;
}

DAT_RETURN cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT size, const DAT_PVOID private_data) {
  auto* cr = self<Cr>(cr_handle);
  if (!cr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
  auto* ep = argument<dat::Ep>(ep_handle, cr->ia());
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  if (size < 0 || (size > 0 && !private_data)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(cr->accept(*ep, {static_cast<const uint8_t*>(private_data), static_cast<size_t>(size)}));
  });
}

DAT_RETURN cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT size, const DAT_PVOID private_data) {
  auto* cr = self<Cr>(cr_handle);
  if (!cr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
  if (size < 0 || (size > 0 && !private_data)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(cr->reject({static_cast<const uint8_t*>(private_data), static_cast<size_t>(size)}));
  });
}

}  // namespace dapple::dat20

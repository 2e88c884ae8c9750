// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/csp.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/psp.hpp"
#include "udapl/core/rsp.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"
#include "udapl/dat20/peer_address.hpp"

namespace dapple::dat20 {
namespace {

using dat::Csp;
using dat::Ia;
using dat::Psp;
using dat::Rsp;

static_assert(sizeof(DAT_COMM) == sizeof(dat::Comm) && offsetof(DAT_COMM, type) == offsetof(dat::Comm, type) &&
              offsetof(DAT_COMM, protocol) == offsetof(dat::Comm, protocol));

dat::Evd* request_evd(DAT_EVD_HANDLE handle, const Ia& ia) {
  auto* evd = argument<dat::Evd>(handle, ia);
  return evd && evd->has(dat::kEvdCr) ? evd : nullptr;
}

DAT_RETURN create_psp(Ia& ia, uint64_t conn_qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags, Psp*& out) {
  dat::Evd* evd = request_evd(evd_handle, ia);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    auto psp = Psp::create(ia, conn_qual, *evd, flags == DAT_PSP_PROVIDER_FLAG);
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
  param->psp_flags = psp->creates_eps() ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG;
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

DAT_RETURN rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                      DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (conn_qual == 0) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  auto* ep = argument<dat::Ep>(ep_handle, *ia);
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  dat::Evd* evd = request_evd(evd_handle, *ia);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (!rsp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    auto rsp = Rsp::create(*ia, conn_qual, *ep, *evd);
    if (!rsp) return to_dat(rsp.error());
    *rsp_handle = *rsp;
    return kSuccess;
  });
}

DAT_RETURN rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  auto* rsp = self<Rsp>(rsp_handle);
  if (!rsp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
  if (mask & ~DAT_RSP_FIELD_ALL) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  std::lock_guard guard(dat::control_mutex());
  param->ia_handle = consumer_handle(rsp->ia());
  param->conn_qual = rsp->conn_qual();
  param->evd_handle = &rsp->evd();
  param->ep_handle = rsp->ep();
  return DAT_SUCCESS;
}

DAT_RETURN rsp_free(DAT_RSP_HANDLE rsp_handle) {
  auto* rsp = self<Rsp>(rsp_handle);
  if (!rsp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(Rsp::free(*rsp));
  });
}

DAT_RETURN csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
                      DAT_CSP_HANDLE* csp_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (!comm) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  dat::Evd* evd = request_evd(evd_handle, *ia);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (!csp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    const sockaddr_storage where = peer_address(*address);
    auto csp =
        Csp::create(*ia, {comm->domain, comm->type, comm->protocol}, reinterpret_cast<const sockaddr*>(&where), *evd);
    if (!csp) return to_dat(csp.error());
    *csp_handle = *csp;
    return kSuccess;
  });
}

DAT_RETURN csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param) {
  auto* csp = self<Csp>(csp_handle);
  if (!csp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
  if (mask & ~DAT_CSP_FIELD_ALL) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  param->ia_handle = consumer_handle(csp->ia());
  param->comm = reinterpret_cast<DAT_COMM*>(const_cast<dat::Comm*>(&csp->comm()));
  param->address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(csp->address());
  param->evd_handle = &csp->evd();
  return DAT_SUCCESS;
}

DAT_RETURN csp_free(DAT_CSP_HANDLE csp_handle) {
  auto* csp = self<Csp>(csp_handle);
  if (!csp) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(Csp::free(*csp));
  });
}

}  // namespace dapple::dat20

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"
#include "udapl/functions/peer_address.hpp"

namespace dapple::udapl::functions {

static_assert(sizeof(DAT_COMM) == sizeof(Comm) && offsetof(DAT_COMM, type) == offsetof(Comm, type) &&
              offsetof(DAT_COMM, protocol) == offsetof(Comm, protocol));

DAT_RETURN csp_create(Ia& ia, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
                      DAT_CSP_HANDLE* csp_handle) {
  if (!comm) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  Evd* evd = find_evd(evd_handle, ia, kEvdCr);
  if (!evd) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
  if (!csp_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  const verbs::SocketAddress where = peer_address(*address);
  return controlled([&] {
    return store(Csp::create(ia, {comm->domain, comm->type, comm->protocol}, where.get(), *evd), csp_handle);
  });
}

DAT_RETURN csp_query(Csp& csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param) {
  if (auto status = check_query(mask, DAT_CSP_FIELD_ALL, param)) return status;
  param->ia_handle = consumer_handle(csp.ia());
  param->comm = reinterpret_cast<DAT_COMM*>(const_cast<Comm*>(&csp.comm()));
  param->address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(csp.address());
  param->evd_handle = &csp.evd();
  return DAT_SUCCESS;
}

DAT_RETURN csp_free(Csp& csp) {
  return controlled([&] { return Csp::free(csp); });
}

}  // namespace dapple::udapl::functions

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia.hpp"
#include "udapl/core/lmr.hpp"
#include "udapl/core/pz.hpp"
#include "udapl/core/sync.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"

namespace dapple::dat20 {

using dat::Ia;
using dat::Lmr;

static_assert(DAT_MEM_PRIV_LOCAL_READ_FLAG == int{dat::kLocalRead} &&
              DAT_MEM_PRIV_REMOTE_READ_FLAG == int{dat::kRemoteRead} &&
              DAT_MEM_PRIV_LOCAL_WRITE_FLAG == int{dat::kLocalWrite} &&
              DAT_MEM_PRIV_REMOTE_WRITE_FLAG == int{dat::kRemoteWrite});

DAT_RETURN lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
                      DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                      DAT_VLEN* registered_size, DAT_VADDR* registered_address) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  switch (mem_type) {
    case DAT_MEM_TYPE_VIRTUAL:
      break;
    case DAT_MEM_TYPE_LMR:
    case DAT_MEM_TYPE_SHARED_VIRTUAL:
      return error(DAT_MODEL_NOT_SUPPORTED);
    default:
      return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  if (va_type == DAT_VA_TYPE_ZB) return error(DAT_MODEL_NOT_SUPPORTED);
  if (va_type != DAT_VA_TYPE_VA) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  if (!lmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
  auto* pz = argument<dat::Pz>(pz_handle, *ia);
  if (!pz) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    auto lmr = Lmr::create(*ia, *pz, region.for_va, length, privileges);
    if (!lmr) return to_dat(lmr.error());
    *lmr_handle = *lmr;
    if (lmr_context) *lmr_context = (*lmr)->context();
    if (rmr_context) *rmr_context = (*lmr)->remote_context();
    if (registered_size) *registered_size = (*lmr)->length();
    if (registered_address) *registered_address = (*lmr)->address();
    return kSuccess;
  });
}

DAT_RETURN lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  const auto* lmr = self<Lmr>(lmr_handle);
  if (!lmr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
  if (mask & ~DAT_LMR_FIELD_ALL) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  *param = {};
  param->ia_handle = consumer_handle(lmr->ia());
  param->mem_type = DAT_MEM_TYPE_VIRTUAL;
  param->region_desc.for_va = reinterpret_cast<DAT_PVOID>(lmr->address());
  param->length = lmr->length();
  param->pz_handle = &lmr->pz();
  param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(lmr->privileges());
  param->va_type = DAT_VA_TYPE_VA;
  param->lmr_context = lmr->context();
  param->rmr_context = lmr->remote_context();
  param->registered_size = lmr->length();
  param->registered_address = lmr->address();
  return DAT_SUCCESS;
}

DAT_RETURN lmr_free(DAT_LMR_HANDLE lmr_handle) {
  auto* lmr = self<Lmr>(lmr_handle);
  if (!lmr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    return to_dat(Lmr::free(*lmr));
  });
}

DAT_RETURN lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  return to_dat(dat::sync_segments(*ia, segments, count, dappledv_sync_for_device));
}

DAT_RETURN lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  return to_dat(dat::sync_segments(*ia, segments, count, dappledv_sync_for_cpu));
}

}  // namespace dapple::dat20

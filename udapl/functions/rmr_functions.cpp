// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

DAT_RETURN rmr_create(Pz& pz, DAT_RMR_HANDLE* rmr_handle) {
  if (!rmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] { return store(Rmr::create(pz.ia(), pz, false), rmr_handle); });
}

DAT_RETURN rmr_query(Rmr& rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
  if (auto status = check_query(mask, DAT_RMR_FIELD_ALL, param)) return status;
  const auto state = rmr.ia().windows().state(rmr);
  *param = {};
  param->ia_handle = consumer_handle(rmr.ia());
  param->pz_handle = &rmr.pz();
  fill_scope(rmr, state.binding, *param);
  if (!state.binding.lmr) return DAT_SUCCESS;
  auto& triplet = param->lmr_triplet;
  triplet.virtual_address = state.binding.address;
  triplet.segment_length = static_cast<decltype(triplet.segment_length)>(state.binding.length);
  triplet.lmr_context = state.binding.lmr_context;
  param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(state.binding.privileges);
  param->rmr_context = state.context;
  return DAT_SUCCESS;
}

DAT_RETURN rmr_free(Rmr& rmr) {
  return controlled([&] { return Rmr::free(rmr); });
}

}  // namespace dapple::udapl::functions

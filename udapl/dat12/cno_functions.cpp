// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/cno.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  const auto* cno = object_of<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  if (mask & ~DAT_CNO_FIELD_ALL) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const WaitAgent agent = cno->notifier()->agent();
  param->ia_handle = consumer_handle(cno->ia());
  param->agent = {agent.instance_data, agent.function};
  return DAT_SUCCESS;
}

}  // namespace dapple::udapl::functions

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cno_query(Cno& cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  if (auto status = check_query(mask, DAT_CNO_FIELD_ALL, param)) return status;
  const WaitAgent agent = cno.notifier()->agent();
  param->ia_handle = consumer_handle(cno.ia());
  param->agent = {agent.instance_data, agent.function};
  return DAT_SUCCESS;
}

}  // namespace dapple::udapl::functions

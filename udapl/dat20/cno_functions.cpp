// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The CNO functions that 2.0 adds: CNOs with a descriptor to poll.
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cno_fd_create(Ia& ia, DAT_FD* fd, DAT_CNO_HANDLE* cno_handle) {
  if (!fd) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!cno_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const DAT_RETURN status = controlled([&] { return store(Cno::create(ia, {}, true), cno_handle); });
  if (status == DAT_SUCCESS) *fd = object_of<Cno>(*cno_handle)->notifier()->fd();
  return status;
}

DAT_RETURN cno_query(Cno& cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  // The standard's masks are not single bits: PROXY is the sum of the two before it, and ALL has its own bit.
  constexpr int kMasks = DAT_CNO_FIELD_IA_HANDLE | DAT_CNO_FIELD_PROXY_TYPE | DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL;
  if (auto status = check_query(mask, kMasks, param)) return status;
  const WaitAgent agent = cno.notifier()->agent();
  *param = {};
  param->ia_handle = consumer_handle(cno.ia());
  param->proxy.agent = {agent.instance_data, agent.function};
  if (cno.has_fd()) {
    param->proxy_type = DAT_PROXY_TYPE_FD;
    param->proxy.fd = cno.notifier()->fd();
  } else {
    param->proxy_type = agent.function ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE;
  }
  return DAT_SUCCESS;
}

DAT_RETURN cno_trigger(Cno& cno, DAT_EVD_HANDLE* evd_handle) {
  if (!evd_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  const auto notifier = cno.notifier();
  const auto evd = notifier->take();
  *evd_handle = evd ? *evd : DAT_HANDLE_NULL;
  return evd ? kSuccess : to_dat(evd.error());
}

}  // namespace dapple::udapl::functions

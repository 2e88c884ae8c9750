// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <system_error>

#include "udapl/core/cno.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/handles.hpp"

namespace dapple::dat20 {
namespace {

using dat::Cno;
using dat::Ia;

dat::WaitAgent to_core(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return {agent.proxy_agent_func, agent.instance_data};
}

DAT_RETURN create(Ia& ia, const dat::WaitAgent& agent, bool has_fd, DAT_CNO_HANDLE* cno_handle) {
  return guarded([&] {
    std::lock_guard guard(dat::control_mutex());
    auto cno = Cno::create(ia, agent, has_fd);
    if (!cno) return to_dat(cno.error());
    *cno_handle = *cno;
    return kSuccess;
  });
}

DAT_RETURN answer(const dat::Result<dat::Evd*>& found, DAT_EVD_HANDLE* evd_handle) {
  *evd_handle = found ? *found : DAT_HANDLE_NULL;
  return found ? kSuccess : to_dat(found.error());
}

}  // namespace

DAT_RETURN cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (!cno_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return create(*ia, to_core(agent), false, cno_handle);
}

DAT_RETURN cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD* fd, DAT_CNO_HANDLE* cno_handle) {
  Ia* ia = self<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (!fd) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!cno_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const DAT_RETURN status = create(*ia, {}, true, cno_handle);
  if (status == DAT_SUCCESS) *fd = self<Cno>(*cno_handle)->notifier()->fd();
  return status;
}

DAT_RETURN cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  auto* cno = self<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  // Who polls a descriptor has no agent besides.
  if (cno->has_fd() && agent.proxy_agent_func) return error(DAT_INVALID_STATE);
  // Without the control mutex: it waits for the former agent's call, which may need it.
  return guarded([&] {
    try {
      cno->notifier()->set_agent(to_core(agent));
    } catch (const std::system_error&) {
      return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_ERROR_HANDLER);
    }
    return kSuccess;
  });
}

DAT_RETURN cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  // The frozen masks are no bits: PROXY is the two before it together, and ALL has a bit of its own.
  constexpr int kMasks = DAT_CNO_FIELD_IA_HANDLE | DAT_CNO_FIELD_PROXY_TYPE | DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL;
  const auto* cno = self<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  if (mask & ~kMasks) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const dat::WaitAgent agent = cno->notifier()->agent();
  *param = {};
  param->ia_handle = consumer_handle(cno->ia());
  param->proxy.agent = {agent.instance_data, agent.function};
  if (cno->has_fd()) {
    param->proxy_type = DAT_PROXY_TYPE_FD;
    param->proxy.fd = cno->notifier()->fd();
  } else {
    param->proxy_type = agent.function ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE;
  }
  return DAT_SUCCESS;
}

DAT_RETURN cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd_handle) {
  auto* cno = self<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  if (!evd_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const auto notifier = cno->notifier();
  return answer(notifier->wait(timeout), evd_handle);
}

DAT_RETURN cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE* evd_handle) {
  auto* cno = self<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  if (!evd_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  const auto notifier = cno->notifier();
  return answer(notifier->take(), evd_handle);
}

DAT_RETURN cno_free(DAT_CNO_HANDLE cno_handle) {
  auto* cno = self<Cno>(cno_handle);
  if (!cno) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
  return guarded([&] {
    dat::Notifier::Threads agents;
    const DAT_RETURN status = [&] {
      std::lock_guard guard(dat::control_mutex());
      return to_dat(Cno::free(*cno, false, agents));
    }();
    dat::Notifier::join(agents);
    return status;
  });
}

}  // namespace dapple::dat20

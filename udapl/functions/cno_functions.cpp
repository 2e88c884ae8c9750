// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {
namespace {

WaitAgent to_core(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return {agent.proxy_agent_func, agent.instance_data};
}

}  // namespace

DAT_RETURN cno_create(Ia& ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno_handle) {
  if (!cno_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return controlled([&] { return store(Cno::create(ia, to_core(agent), false), cno_handle); });
}

DAT_RETURN cno_modify_agent(Cno& cno, DAT_OS_WAIT_PROXY_AGENT agent) {
  // A consumer that polls a descriptor has no agent.
  if (cno.has_fd() && agent.proxy_agent_func) return error(DAT_INVALID_STATE);
  // Called without the control mutex: the call waits for the former agent's call, which may need the mutex.
  return guarded([&] { return to_dat(cno.notifier()->set_agent(to_core(agent))); });
}

DAT_RETURN cno_wait(Cno& cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd_handle) {
  if (!evd_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const auto notifier = cno.notifier();
  const auto evd = notifier->wait(timeout);
  *evd_handle = evd ? *evd : DAT_HANDLE_NULL;
  return evd ? kSuccess : to_dat(evd.error());
}

DAT_RETURN cno_free(Cno& cno) {
  return guarded([&] {
    Notifier::Threads agents;
    const DAT_RETURN status = controlled([&] {
      // uDAPL 2.0 dat_cno_free: not while a thread is blocked. The close of the IA releases such threads.
      if (cno.notifier()->has_blocked_waiter()) return error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
      return to_dat(Cno::free(cno, false, agents));
    });
    Notifier::join(agents);
    return status;
  });
}

}  // namespace dapple::udapl::functions

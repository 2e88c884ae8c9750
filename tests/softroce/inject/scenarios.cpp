// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The scenarios that need no connection.
#include <dat2/dat_registry.h>

#include <cstring>

#include "tests/softroce/inject/run.hpp"

namespace dapple::inject {
namespace {

void play_open(Run& run) {
  char name[] = "inject";
  char other_name[] = "inject-by-device";
  DAT_IA_HANDLE other = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE borrowed = DAT_HANDLE_NULL;
  DAT_COUNT count = 0;
  DAT_PROVIDER_INFO infos[4];
  DAT_PROVIDER_INFO* list[] = {&infos[0], &infos[1], &infos[2], &infos[3]};
  DAT_HA_RELATIONSHIP related = DAT_HA_UNKNOWN;
  DAT_CALL(run, dat_registry_list_providers, 4, &count, list);
  run.open();
  run.call("dat_ia_open", [&] {
    borrowed = run.async;
    return dat_ia_openv(other_name, 8, &borrowed, &other, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE);
  });
  DAT_CALL(run, dat_registry_providers_related, name, other_name, &related);
  DAT_CALL(run, dat_ia_close, other, DAT_CLOSE_GRACEFUL_FLAG);
  run.close();
}

void play_memory(Run& run) {
  DAT_REGION_DESCRIPTION region{};
  DAT_LMR_HANDLE lmr[4] = {};
  DAT_LMR_CONTEXT context = 0;
  DAT_RMR_HANDLE rmr[2] = {};
  char cookie[40] = "a region shared by all who say this";
  run.open();
  region.for_va = run.memory();
  const auto create = [&](DAT_MEM_TYPE type, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_LMR_HANDLE& out) {
    DAT_CALL(run, dat_lmr_create, run.ia, type, region, kMemorySize, run.pz, privileges, va_type, &out, &context,
             nullptr, nullptr, nullptr);
  };
  create(DAT_MEM_TYPE_VIRTUAL, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, lmr[0]);
  create(DAT_MEM_TYPE_VIRTUAL, DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_ZB, lmr[1]);
  region.for_lmr_handle = lmr[0];
  create(DAT_MEM_TYPE_LMR, DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, lmr[2]);
  region.for_shared_memory.virtual_address = run.memory();
  region.for_shared_memory.shared_memory_id = &cookie;
  create(DAT_MEM_TYPE_SHARED_VIRTUAL, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, lmr[3]);
  DAT_CALL(run, dat_rmr_create, run.pz, &rmr[0]);
  DAT_CALL(run, dat_rmr_create_for_ep, run.pz, &rmr[1]);
  for (DAT_RMR_HANDLE window : rmr) DAT_CALL(run, dat_rmr_free, window);
  for (DAT_LMR_HANDLE each : lmr) DAT_CALL(run, dat_lmr_free, each);
  run.close();
}

void play_events(Run& run) {
  constexpr DAT_EVD_FLAGS kAll = static_cast<DAT_EVD_FLAGS>(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE found = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE other = DAT_HANDLE_NULL;
  DAT_FD fd{};
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  // The agent does nothing; only its thread matters.
  const DAT_OS_WAIT_PROXY_AGENT agent = {nullptr, [](DAT_PVOID, DAT_EVD_HANDLE) {}};
  run.open(DAT_TRUE);
  DAT_CALL(run, dat_cno_create, run.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno);
  DAT_CALL(run, dat_cno_create, run.ia, agent, &other);
  DAT_CALL(run, dat_cno_free, other);
  DAT_CALL(run, dat_cno_fd_create, run.ia, &fd, &other);
  DAT_CALL(run, dat_evd_create, run.ia, 16, cno, kAll, &evd);
  DAT_CALL(run, dat_evd_post_se, evd, &event);
  DAT_CALL(run, dat_cno_wait, cno, kWaitUs, &found);
  DAT_CALL(run, dat_evd_dequeue, evd, &event);
  // The wait times out, unless the wait itself fails.
  run.call("dat_cno_wait", [&] {
    const DAT_RETURN status = dat_cno_wait(cno, 20'000, &found);
    return DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY ? DAT_RETURN{DAT_SUCCESS} : status;
  });
  DAT_CALL(run, dat_evd_modify_cno, evd, other);
  DAT_CALL(run, dat_evd_disable, evd);
  DAT_CALL(run, dat_evd_enable, evd);
  DAT_CALL(run, dat_evd_resize, evd, 400);
  DAT_CALL(run, dat_cno_modify_agent, cno, agent);
  run.call("dat_evd_wait", [&] {
    DAT_COUNT more = 0;
    const DAT_RETURN status = dat_evd_wait(evd, 20'000, 1, &event, &more);
    return DAT_GET_TYPE(status) == DAT_TIMEOUT_EXPIRED ? DAT_RETURN{DAT_SUCCESS} : status;
  });
  DAT_CALL(run, dat_evd_free, evd);
  DAT_CALL(run, dat_cno_free, other);
  DAT_CALL(run, dat_cno_free, cno);
  run.close();
}

void play_endpoint(Run& run) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connect = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  DAT_EP_HANDLE bare = DAT_HANDLE_NULL;
  DAT_EP_PARAM param{};
  run.open();
  DAT_CALL(run, dat_evd_create, run.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd);
  DAT_CALL(run, dat_evd_create, run.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connect);
  // Without an EVD for requests its queue pair needs the IA's own CQ.
  DAT_CALL(run, dat_ep_create, run.ia, run.pz, evd, DAT_HANDLE_NULL, connect, nullptr, &ep);
  DAT_CALL(run, dat_ep_create, run.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr,
           &bare);
  param.pz_handle = run.pz;
  param.recv_evd_handle = evd;
  param.request_evd_handle = evd;
  param.connect_evd_handle = connect;
  DAT_CALL(run, dat_ep_modify, bare,
           DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
               DAT_EP_FIELD_CONNECT_EVD_HANDLE,
           &param);
  param.ep_attr.max_recv_dtos = 8;
  DAT_CALL(run, dat_ep_modify, bare, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
  DAT_CALL(run, dat_ep_free, bare);
  DAT_CALL(run, dat_ep_free, ep);
  DAT_CALL(run, dat_evd_free, connect);
  DAT_CALL(run, dat_evd_free, evd);
  run.close();
}

}  // namespace

const Scenario kScenarios[] = {
    {"open", play_open},
    {"memory", play_memory},
    {"events", play_events},
    {"endpoint", play_endpoint},
    {"connection", play_connection},
    {"service points", play_service_points},
    {"windows", play_windows},
    {"shared queue", play_shared_queue},
    {"datagrams", play_datagrams},
    {nullptr, nullptr},
};

}  // namespace dapple::inject

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Event dispatchers and consumer notification objects.
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

constexpr auto kQueueEmpty = status(DAT_QUEUE_EMPTY);

DAT_HANDLE made;
DAT_EVENT event;
DAT_EVENT software_event, other_event;
DAT_COUNT more;
DAT_EVD_PARAM evd_param;
DAT_CNO_PARAM cno_param;
DAT_EVD_HANDLE triggered;
ONLY_20(DAT_FD fd;)
DAT_OS_WAIT_PROXY_AGENT no_agent, an_agent;

void agent(DAT_PVOID, DAT_EVD_HANDLE) {}

Argument qlen() {
  const DAT_RETURN too_much = status(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
  return good(8).also("0", 0).also("negative", -1).also("huge", INT32_MAX, too_much);
}

void add_evds(Table& t) {
  const World& w = t.w;
  t.add(FUNCTION(
      dat_evd_create,
      {t.self(kIa), qlen(), t.optional_further(kCno, w.used_cno, DAT_INVALID_HANDLE_CNO),
       good(DAT_EVD_DTO_FLAG).also("no stream", 0).also("out of range", 0x1000).also("negative", -1), needed(&made)}));
  t.add(FUNCTION(dat_evd_query, {t.self(kEvd), mask(DAT_EVD_FIELD_ALL), needed(&evd_param)}));
  t.add(FUNCTION(dat_evd_modify_cno, {t.self(kEvd), t.optional_further(kCno, w.used_cno, DAT_INVALID_HANDLE_CNO)}));
  t.add(FUNCTION(dat_evd_disable, {t.self(kEvd)}));
  t.add(FUNCTION(dat_evd_enable, {t.self(kEvd)}));
  t.add(FUNCTION(dat_evd_post_se, {t.self(kEvd).also("without the software stream", w.f.active.recv, argument_error(1)),
                                   needed(&software_event).also("no software event", &other_event)}));
  t.add(FUNCTION(dat_evd_wait,
                 {t.self(kEvd), any(1000),
                  good(1).also("0", 0).also("negative", -1).also("longer than the queue", 65).also("huge", INT32_MAX),
                  needed(&event), needed(&more)}));
  t.add(FUNCTION(dat_evd_set_unwaitable, {t.self(kEvd)}));
  // The EVD is unwaitable from here on.
  t.add(FUNCTION_GIVING(state(DAT_INVALID_STATE_EVD_UNWAITABLE), dat_evd_wait,
                        {t.self(kEvd), any(1000), any(1), needed(&event), needed(&more)}));
  t.add(FUNCTION(dat_evd_clear_unwaitable, {t.self(kEvd)}));
  t.add(FUNCTION_GIVING(kQueueEmpty, dat_evd_dequeue, {t.self(kEvd), needed(&event)}));
  t.add(FUNCTION(dat_evd_resize, {t.self(kEvd), qlen()}));
  t.add(FUNCTION(dat_evd_free, {t.self(kEvd).also("in use", w.full_evd, state(DAT_INVALID_STATE_EVD_IN_USE))}));
}

void add_cnos(Table& t) {
  const World& w = t.w;
  t.add(FUNCTION(dat_cno_create, {t.self(kIa), any(&no_agent), needed(&made)}));
  ONLY_20(t.add(FUNCTION(dat_cno_fd_create, {t.self(kIa), needed(&fd), needed(&made)}));)
  t.add(FUNCTION(dat_cno_query, {t.self(kCno), mask(ONLY_20(7) ONLY_12(DAT_CNO_FIELD_ALL)), needed(&cno_param)}));
  t.add(FUNCTION(
      dat_cno_modify_agent,
      {t.self(kCno) ONLY_20(.also("with a descriptor", w.fd_cno, status(DAT_INVALID_STATE))), any(&an_agent)}));
  t.add(FUNCTION(dat_cno_modify_agent, {t.self(kCno), any(&no_agent)}));
  t.add(FUNCTION_GIVING(kQueueEmpty, dat_cno_wait, {t.self(kCno), any(1000), needed(&triggered)}));
  ONLY_20(t.add(FUNCTION_GIVING(kQueueEmpty, dat_cno_trigger, {t.self(kCno), needed(&triggered)}));)
  t.add(FUNCTION(dat_cno_free, {t.self(kCno).also("in use", w.used_cno, state(DAT_INVALID_STATE_CNO_IN_USE))}));
}

}  // namespace

void add_events(Table& t) {
  software_event.event_number = DAT_SOFTWARE_EVENT;
  other_event.event_number = DAT_DTO_COMPLETION_EVENT;
  an_agent.proxy_agent_func = agent;
  add_evds(t);
  add_cnos(t);
}

}  // namespace arguments

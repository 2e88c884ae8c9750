// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/qp_users.hpp"

#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"
#include "provider/soft/verbs/queue_pairs/xrc_handles.hpp"

namespace dapple::soft::verbs {
namespace {

// Receives of a queue that matches tags complete into the completion queue of that queue. The program has named another
// one for the queue pair, which stays, too.
Cq* unused_cq(const Qp& qp) {
  if (qp.tags == nullptr || qp.init.recv_cq == &qp.recv_cq->abi.cq) return nullptr;
  return ours<Cq>(qp.init.recv_cq);
}

}  // namespace

void hold_objects(Qp& qp, ibv_pd* pd) {
  show_to_program(qp, pd);
  assert(qp.pd != nullptr && qp.send_cq != nullptr && qp.recv_cq != nullptr);
  qp.pd->users.fetch_add(1);
  qp.send_cq->users.fetch_add(1);
  qp.recv_cq->users.fetch_add(1);
  if (Cq* unused = unused_cq(qp)) unused->users.fetch_add(1);
  if (qp.srq != nullptr) qp.srq->users.fetch_add(1);
}

Pd& leave_objects(Qp& qp) {
  {
    const CancelGuard whole;
    qp.runtime->remove(qp);
  }
  assert(qp.scheduling.ends && qp.scheduling.pins.load() == 0 && qp.transport.published == 0);
  qp.context->withdraw(&qp.abi, qp.event_count);
  ibv_qp& shown = qp.abi.qp;
  wait_for_acknowledgements(shown.mutex, shown.cond, shown.events_completed, qp.event_count);
  leave_frames(qp);
  if (qp.tags != nullptr) qp.tags->end();
  if (Cq* unused = unused_cq(qp)) leave(unused->users);
  if (qp.srq != nullptr) leave(qp.srq->users);
  leave(qp.recv_cq->users);
  leave(qp.send_cq->users);
  if (qp.counters != nullptr) qp.counters->leave_all();
  leave(qp.context->live_queue_pairs);
  pthread_cond_destroy(&shown.cond);
  pthread_mutex_destroy(&shown.mutex);
  return *qp.pd;
}

}  // namespace dapple::soft::verbs

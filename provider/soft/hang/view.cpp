// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/view.hpp"

#include <poll.h>

#include <cassert>
#include <mutex>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/explain/requests/explained_qp.hpp"
#include "provider/soft/explain/requests/peers_end.hpp"
#include "provider/soft/objects/fork_generation.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::hang {
namespace {

// A child of fork() has only copies of its parent's objects.
bool is_own(const Context* context) {
  return context != nullptr && context->generation == ForkGeneration::now();
}

// Events that an object's destroy waits for. The destroy has taken back those that the program has not read.
// Negative: the program has acknowledged more than it has got.
int32_t missing(uint32_t written, uint32_t acknowledged) {
  return static_cast<int32_t>(written - acknowledged);
}

bool is_readable(int fd) {
  pollfd state = {fd, POLLIN, 0};
  return poll(&state, 1, 0) == 1 && (state.revents & POLLIN) != 0;
}

// Completions in a queue.
struct Count {
  uint32_t all = 0;
  uint32_t received = 0;  // of these, those of receives
};

Count count_of(Cq& cq) {
  Count count;
  cq.queue.look([&](const roce::Completion& completion) {
    count.all++;
    if (completion.opcode >= roce::CompletionOpcode::kReceive) count.received++;
  });
  return count;
}

CqView view_of(Cq& cq, const CqNote& note) {
  CqView view;
  view.cq = &cq.abi.cq;
  view.note = note;
  view.device = cq.context->ibv->device->name;
  const ibv_cq& ibv = cq.abi.cq;
  if (ibv.channel != nullptr && !note.ends) {
    view.channel = ibv.channel->fd;
    view.unread = is_readable(view.channel);
  }
  const Count count = count_of(cq);
  view.there = count.all;
  view.received = count.received;
  view.armed = cq.queue.armed();
  view.not_acknowledged = missing(cq.completion_events.written, ibv.comp_events_completed);
  view.errors_not_acknowledged = missing(cq.asynchronous_events.written, ibv.async_events_completed);
  return view;
}

QpView view_of(Qp& qp, const QpNote& note) {
  QpView view;
  view.note = note;
  view.device = qp.context->ibv->device->name;
  view.qpn = qp.qpn;
  view.send_cq = &qp.send_cq->abi.cq;
  view.recv_cq = &qp.recv_cq->abi.cq;
  view.receives = qp.srq == nullptr ? qp.own_receives.count() : qp.srq->queue.count();
  if (qp.srq != nullptr && qp.srq->tags != nullptr) {
    const std::lock_guard lock(qp.srq->tags->list.mutex);
    view.receives += qp.srq->tags->list.count();
  }
  view.not_acknowledged = missing(qp.event_count.written, qp.abi.qp.events_completed);
  if (qp.layers.checked != nullptr) {
    view.was_written = qp.layers.checked->memory.was_written();
    view.unready_since_ns = qp.layers.checked->events.unready_since();
  }
  if (view.unready_since_ns != 0) view.has_unpolled_receives = count_of(*qp.recv_cq).received != 0;
  const std::lock_guard lock(qp.mutex);
  view.min_rnr_timer = qp.engine->attributes().min_rnr_timer;
  view.state = qp.engine->state();
  view.is_patient = qp.init.qp_type == IBV_QPT_RC && qp.engine->attributes().timeout == 0;
  view.peer = qp.engine->attributes().destination_qpn;
  view.outstanding = qp.engine->outstanding_sends();
  view.naks = qp.engine->counters().rnr_naks_sent;
  return view;
}

// A distant peer's packets only give hints, so they count only if there was none at all.
explain::Reason silence_of(Qp& qp) {
  if (qp.init.qp_type != IBV_QPT_RC) return {};
  std::unique_lock lock(qp.mutex);
  const explain::Failure failure = explain::ends_of(qp);
  lock.unlock();
  if (!explain::is_of_this_host(failure) && failure.packets.answers) return {};
  return explain::why_peer_is_silent(failure);
}

SrqView view_of(Srq& srq, const SrqNote& note) {
  SrqView view;
  view.note = note;
  view.device = srq.context->ibv->device->name;
  view.events = srq.context->ibv->async_fd;
  view.limit = srq.queue.limit();
  view.receives = srq.queue.count();
  view.not_acknowledged = missing(srq.events.written, srq.abi.srq.events_completed);
  return view;
}

}  // namespace

View look(Notes& notes, bool is_quiet) {
  View view;
  const Notes::Tables tables = notes.hold();
  for (const auto& [cq, note] : tables.cqs) {
    if ((is_quiet || !note.ends) && is_own(cq->context)) view.cqs.push_back(view_of(*cq, note));
  }
  for (const auto& [qp, note] : tables.qps) {
    if ((!is_quiet && note.ends) || !is_own(qp->context)) continue;
    view.qps.push_back(view_of(*qp, note));
    if (view.qps.back().outstanding != 0) view.qps.back().silence = silence_of(*qp);
  }
  for (const auto& [srq, note] : tables.srqs) {
    if ((is_quiet || !note.ends) && is_own(srq->context)) view.srqs.push_back(view_of(*srq, note));
  }
  view.pollers = tables.pollers;
  notes.let_go();
  return view;
}

View look_at(Notes& notes, Qp& qp) {
  View view;
  if (!is_own(qp.context)) return view;
  QpNote note;
  notes.change([&](Notes::Tables& tables) {
    if (const auto found = tables.qps.find(&qp); found != tables.qps.end()) note = found->second;
  });
  view.qps.push_back(view_of(qp, note));
  return view;
}

}  // namespace dapple::soft::hang

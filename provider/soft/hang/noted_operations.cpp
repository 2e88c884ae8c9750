// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/noted_operations.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/explain/malformed_posts.hpp"
#include "provider/soft/hang/causes.hpp"
#include "provider/soft/hang/hang_reporter.hpp"
#include "provider/soft/hang/last_look.hpp"
#include "provider/soft/hang/notes/noted_polls.hpp"
#include "provider/soft/hang/notes/notes.hpp"
#include "provider/soft/hang/open_batches.hpp"
#include "provider/soft/hang/watcher.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/sanitizers/watched.hpp"
#include "provider/soft/transport/closing_watch.hpp"

namespace dapple::soft::hang {
namespace {

using check::CallStack;
using check::here;

constinit const Operations* inner = nullptr;

Notes& notes() {
  return *Notes::get();
}

template <typename Element>
void add(std::deque<Element>& last, Element element, size_t most) {
  last.push_back(std::move(element));
  if (last.size() > most) last.pop_front();
}

// Any other verb that has an effect.
template <auto kMember, typename Function = FunctionOf<kMember>>
struct Moving;

template <auto kMember, typename Result, typename... Arguments>
struct Moving<kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    notes().note_progress();
    return (inner->*kMember)(arguments...);
  }
};

// Completion queues.

template <typename Made>
Made* note_cq(Made* made, ibv_cq* cq) {
  notes().note_progress();
  Watcher::start();
  CqNote note;
  note.made = here();
  notes().change([&](Notes::Tables& tables) { tables.cqs.insert_or_assign(ours<Cq>(cq), note); });
  return made;
}

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) {
  ibv_cq* cq = inner->create_cq(context, cqe, channel, vector);
  return cq == nullptr ? cq : note_cq(cq, cq);
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  const int polled = inner->poll_cq(cq, count, completions);
  if (count > 0) note_poll(cq, polled <= 0);
  return polled;
}

int start_poll(ibv_cq_ex* ibv, ibv_poll_cq_attr* attr) {
  Cq& cq = *ours<Cq>(ibv);
  const bool locks = !cq.single_threaded;
  if (locks && waits_for_itself(cq.polling, ibv_cq_ex_to_cq(ibv))) return EBUSY;
  const int error = cq.below_hang.start_poll(ibv, attr);
  if (locks && error == 0) begin_batch(cq.polling);
  note_poll(ibv_cq_ex_to_cq(ibv), error != 0);
  return error;
}

int next_poll(ibv_cq_ex* cq) {
  const int error = ours<Cq>(cq)->below_hang.next_poll(cq);
  if (error == 0) note_poll(ibv_cq_ex_to_cq(cq), false);
  return error;
}

void end_poll(ibv_cq_ex* ibv) {
  Cq& cq = *ours<Cq>(ibv);
  if (!cq.single_threaded) {
    if (is_not_begun(cq.polling, ibv_cq_ex_to_cq(ibv))) return;
    end_batch(cq.polling);
  }
  cq.below_hang.end_poll(ibv);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* cq = inner->create_cq_ex(context, attr);
  if (cq == nullptr) return nullptr;
  ours<Cq>(cq)->below_hang = {cq->start_poll, cq->next_poll, cq->end_poll};
  cq->start_poll = watched<start_poll>();
  cq->next_poll = watched<next_poll>();
  cq->end_poll = watched<end_poll>();
  return note_cq(cq, ibv_cq_ex_to_cq(cq));
}

int req_notify_cq(ibv_cq* ibv, int solicited_only) {
  Cq* cq = ours<Cq>(ibv);
  const Stack stack = here();
  // The plan of faults may let completions come during the call, before the queue is armed.
  const int error = inner->req_notify_cq(ibv, solicited_only);
  if (error != 0) return error;
  const Arm arm = {stack, cq->queue.count()};
  notes().change([&](Notes::Tables& tables) { tables.cqs[cq].arm = arm; });
  return 0;
}

void cq_event(ibv_cq* cq) {
  notes().note_progress();
  const Stack stack = here();
  notes().change([&](Notes::Tables& tables) { tables.cqs[ours<Cq>(cq)].got.add(stack); });
  if (inner->cq_event != nullptr) inner->cq_event(cq);
}

// Queue pairs.

template <typename Made>
Made* note_qp(Made* made) {
  if (made == nullptr) return made;
  notes().note_progress();
  QpNote note;
  note.made = here();
  notes().change([&](Notes::Tables& tables) { tables.qps.insert_or_assign(ours<Qp>(made), note); });
  return made;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return note_qp(inner->create_qp(pd, attr));
}

// Notes a request before the post, since the device may complete it during the call.
void note_send(Qp& qp, KnownStack stack, bool signaled) {
  notes().change([&](Notes::Tables& tables) {
    QpNote& note = tables.qps[&qp];
    note.sends.push_back(NotedSend{stack, signaled || qp.init.sq_sig_all != 0});
    note.in_post++;
  });
}

// After the post of `count` requests. The device has refused the last ones, so those take no older request's place.
void end_post(Qp& qp, size_t count, size_t refused) {
  notes().change([&](Notes::Tables& tables) {
    QpNote& note = tables.qps[&qp];
    assert(refused <= count);
    // Another thread may have destroyed the queue pair, although it is used.
    note.in_post -= std::min(count, note.in_post);
    for (; refused > 0 && !note.sends.empty(); refused--) note.sends.pop_back();
    while (note.sends.size() > qp.init.cap.max_send_wr + note.in_post) note.sends.pop_front();
  });
}

int post_send(ibv_qp* ibv, ibv_send_wr* requests, ibv_send_wr** bad) {
  if (explain::is_circle(hang_reporter(), "ibv_post_send", ibv, requests, bad)) return EINVAL;
  Qp& qp = *ours<Qp>(ibv);
  const CallStack call;
  notes().note_progress();
  size_t count = 0, refused = 0;
  for (const ibv_send_wr* wr = requests; wr != nullptr; wr = wr->next, count++)
    note_send(qp, call.get(), (wr->send_flags & IBV_SEND_SIGNALED) != 0);
  const int error = inner->post_send(ibv, requests, bad);
  for (const ibv_send_wr* wr = error == 0 ? nullptr : *bad; wr != nullptr; wr = wr->next) refused++;
  end_post(qp, count, refused);
  return error;
}

// Threads share the queue pair, so a batch of posts has a lock.
bool locks_batches(const Qp& qp) {
  return !qp.pd->is_single_threaded();
}

void wr_start(ibv_qp_ex* ibv) {
  Qp& qp = *ours<Qp>(ibv);
  ExtendedPost& post = *qp.extended;
  if (locks_batches(qp) && waits_for_itself(post.posting, &ibv->qp_base)) {
    end_batch(post.posting);
    post.below_hang.wr_abort(ibv);
  }
  post.below_hang.wr_start(ibv);
  if (locks_batches(qp)) begin_batch(post.posting);
}

void wr_abort(ibv_qp_ex* ibv) {
  Qp& qp = *ours<Qp>(ibv);
  if (locks_batches(qp)) {
    if (is_not_begun(qp.extended->posting, &ibv->qp_base, "ibv_wr_abort")) return;
    end_batch(qp.extended->posting);
  }
  qp.extended->below_hang.wr_abort(ibv);
}

int wr_complete(ibv_qp_ex* ibv) {
  Qp& qp = *ours<Qp>(ibv);
  const CallStack call;
  if (locks_batches(qp)) {
    if (is_not_begun(qp.extended->posting, &ibv->qp_base, "ibv_wr_complete")) return errno = EINVAL;
    end_batch(qp.extended->posting);
  }
  notes().note_progress();
  // Between wr_start() and wr_complete() only this thread uses the requests.
  const ExtendedPost& post = *qp.extended;
  const uint32_t count = post.error == 0 ? post.count : 0;
  for (uint32_t i = 0; i < count; i++) note_send(qp, call.get(), (post.requests[i]->send.flags & roce::kSignaled) != 0);
  const int error = post.below_hang.wr_complete(ibv);
  end_post(qp, count, error == 0 ? 0 : count);
  return error;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp* qp = inner->create_qp_ex(context, attr);
  if (qp != nullptr && ours<Qp>(qp)->extended != nullptr) {
    ibv_qp_ex& extended = ours<Qp>(qp)->abi.qp_ex;
    ours<Qp>(qp)->extended->below_hang = {extended.wr_start, extended.wr_complete, extended.wr_abort};
    extended.wr_start = watched<wr_start>();
    extended.wr_complete = watched<wr_complete>();
    extended.wr_abort = watched<wr_abort>();
  }
  return note_qp(qp);
}

int post_recv(ibv_qp* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  if (explain::is_circle(hang_reporter(), "ibv_post_recv", ibv, requests, bad)) return EINVAL;
  Qp& qp = *ours<Qp>(ibv);
  const CallStack call;
  notes().note_progress();
  const int error = inner->post_recv(ibv, requests, bad);
  notes().change([&](Notes::Tables& tables) {
    for (const ibv_recv_wr* wr = requests; wr != nullptr && !(error != 0 && wr == *bad); wr = wr->next)
      add(tables.qps[&qp].receives, call.get(), qp.own_receives.depth());
  });
  return error;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  if (explain::is_circle(hang_reporter(), "ibv_post_srq_recv", srq, requests, bad)) return EINVAL;
  const CallStack call;
  notes().note_progress();
  const int error = inner->post_srq_recv(srq, requests, bad);
  if (error == 0) notes().change([&](Notes::Tables& tables) { tables.srqs[ours<Srq>(srq)].receive = call.get(); });
  return error;
}

int post_srq_ops(ibv_srq* srq, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  if (explain::is_circle(hang_reporter(), "ibv_post_srq_ops", srq, operations, bad)) return EINVAL;
  notes().note_progress();
  return inner->post_srq_ops(srq, operations, bad);
}

// In RESET the device forgets all requests.
int modify_qp(ibv_qp* ibv, ibv_qp_attr* attr, int mask) {
  notes().note_progress();
  Qp& qp = *ours<Qp>(ibv);
  const bool resets = (mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RESET;
  if (!resets) return inner->modify_qp(ibv, attr, mask);
  Lost lost = {.reset = here(), .send = {}, .receive = {}};
  {
    const std::lock_guard lock(qp.mutex);
    lost.sends = qp.engine->outstanding_sends();
    lost.naks = qp.engine->counters().rnr_naks_sent;
  }
  lost.receives = qp.srq == nullptr ? qp.own_receives.count() : 0;
  const int error = inner->modify_qp(ibv, attr, mask);
  if (error != 0) return error;
  notes().change([&](Notes::Tables& tables) {
    QpNote& note = tables.qps[&qp];
    const auto oldest = [](const auto& last, uint64_t count) { return last[last.size() - count]; };
    if (lost.sends != 0 && lost.sends <= note.sends.size()) lost.send = oldest(note.sends, lost.sends).stack;
    if (lost.receives != 0 && lost.receives <= note.receives.size())
      lost.receive = oldest(note.receives, lost.receives);
    note.sends.clear();
    note.receives.clear();
    note.lost = lost.sends + lost.receives == 0 ? std::nullopt : std::optional(lost);
  });
  return 0;
}

// Shared receive queues.

// `limit`: that of the caller's attributes.
ibv_srq* note_srq(ibv_srq* srq, uint32_t limit) {
  if (srq == nullptr) return nullptr;
  notes().note_progress();
  SrqNote note;
  note.made = here();
  if (limit != 0) note.limit = note.made;
  note.limit_value = limit;
  notes().change([&](Notes::Tables& tables) { tables.srqs.insert_or_assign(ours<Srq>(srq), note); });
  return srq;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const uint32_t limit = attr->attr.srq_limit;
  return note_srq(inner->create_srq(pd, attr), limit);
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const uint32_t limit = attr->attr.srq_limit;
  return note_srq(inner->create_srq_ex(context, attr), limit);
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  notes().note_progress();
  const int error = inner->modify_srq(srq, attr, mask);
  if (error != 0 || (mask & IBV_SRQ_LIMIT) == 0) return error;
  const Stack stack = here();
  notes().change([&](Notes::Tables& tables) {
    SrqNote& note = tables.srqs[ours<Srq>(srq)];
    note.limit_value = attr->srq_limit;
    note.limit = attr->srq_limit == 0 ? std::nullopt : std::optional(stack);
    note.got = {};
  });
  return 0;
}

void async_event(ibv_context* context, ibv_async_event* event) {
  notes().note_progress();
  const Stack stack = here();
  notes().change([&](Notes::Tables& tables) {
    switch (event->event_type) {
      case IBV_EVENT_SRQ_ERR:
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        tables.srqs[ours<Srq>(event->element.srq)].got.add(stack);
        break;
      case IBV_EVENT_CQ_ERR:
        tables.cqs[ours<Cq>(event->element.cq)].got_errors.add(stack);
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_COMM_EST:
      case IBV_EVENT_SQ_DRAINED:
      case IBV_EVENT_PATH_MIG:
      case IBV_EVENT_PATH_MIG_ERR:
      case IBV_EVENT_QP_LAST_WQE_REACHED:
        tables.qps[ours<Qp>(event->element.qp)].got.add(stack);
        break;
      default:
        break;
    }
  });
  if (inner->async_event != nullptr) inner->async_event(context, event);
}

// The ends of objects. `table`: the member of Tables; `destroy` returns 0 if the object is gone.
template <typename Object, typename Note, typename Destroy>
int ended(std::map<Object*, Note> Notes::Tables::*table, Object* object, Destroy destroy) {
  notes().note_progress();
  const auto mark = [&](bool ends) {
    return [=](Notes::Tables& tables) {
      const auto found = (tables.*table).find(object);
      if (found != (tables.*table).end()) found->second.ends = ends;
    };
  };
  notes().end(mark(true));
  const int error = destroy();
  if (error != 0) {
    notes().change(mark(false));
  } else {
    notes().change([&](Notes::Tables& tables) {
      const auto found = (tables.*table).find(object);
      // Another object may have this address by now.
      if (found != (tables.*table).end() && found->second.ends) (tables.*table).erase(found);
    });
  }
  return error;
}

int destroy_cq(ibv_cq* cq) {
  return ended(&Notes::Tables::cqs, ours<Cq>(cq), [&] { return inner->destroy_cq(cq); });
}

// The peer's request may have failed meanwhile, so the program does not hang.
int destroy_qp(ibv_qp* qp) {
  for (const check::Report& report : lost_receives(look_at(notes(), *ours<Qp>(qp)))) hang_reporter().show(report);
  for (const check::Report& report : last_look(notes(), *ours<Qp>(qp))) hang_reporter().show(report);
  return ended(&Notes::Tables::qps, ours<Qp>(qp), [&] { return inner->destroy_qp(qp); });
}

int destroy_srq(ibv_srq* srq) {
  return ended(&Notes::Tables::srqs, ours<Srq>(srq), [&] { return inner->destroy_srq(srq); });
}

// The program has left these objects. Nobody may look at them from now on, since they use the device.
void forget_objects_of(const Context& context) {
  const auto is_left = [&](const auto& entry) { return !entry.second.ends && entry.first->context == &context; };
  notes().end([&](Notes::Tables& tables) {
    std::erase_if(tables.cqs, is_left);
    std::erase_if(tables.qps, is_left);
    std::erase_if(tables.srqs, is_left);
  });
}

}  // namespace

const Operations& noted_operations(const Operations& operations) {
  static const Operations table = [&] {
    assert(inner == nullptr && Notes::get() != nullptr);
    inner = &operations;
    closing_watch.store(forget_objects_of, std::memory_order_release);
    Operations made = operations;
#define DAPPLE_MOVING(name) made.name = Moving<&Operations::name>::call;
    DAPPLE_MOVING(alloc_mw)
    DAPPLE_MOVING(alloc_pd)
    DAPPLE_MOVING(attach_counters_point_flow)
    DAPPLE_MOVING(bind_mw)
    DAPPLE_MOVING(close_xrcd)
    DAPPLE_MOVING(create_ah)
    DAPPLE_MOVING(create_counters)
    DAPPLE_MOVING(create_flow)
    DAPPLE_MOVING(create_rwq_ind_table)
    DAPPLE_MOVING(create_wq)
    DAPPLE_MOVING(dealloc_mw)
    DAPPLE_MOVING(dealloc_pd)
    DAPPLE_MOVING(dereg_mr)
    DAPPLE_MOVING(destroy_counters)
    DAPPLE_MOVING(destroy_flow)
    DAPPLE_MOVING(destroy_rwq_ind_table)
    DAPPLE_MOVING(destroy_wq)
    DAPPLE_MOVING(import_dm)
    DAPPLE_MOVING(import_mr)
    DAPPLE_MOVING(import_pd)
    DAPPLE_MOVING(modify_wq)
    DAPPLE_MOVING(open_qp)
    DAPPLE_MOVING(open_xrcd)
    DAPPLE_MOVING(reg_mr)
    DAPPLE_MOVING(resize_cq)
#undef DAPPLE_MOVING
    made.async_event = watched<async_event>();
    made.cq_event = watched<cq_event>();
    made.create_cq = watched<create_cq>();
    made.create_cq_ex = watched<create_cq_ex>();
    made.create_qp = watched<create_qp>();
    made.create_qp_ex = watched<create_qp_ex>();
    made.create_srq = watched<create_srq>();
    made.create_srq_ex = watched<create_srq_ex>();
    made.destroy_cq = watched<destroy_cq>();
    made.destroy_qp = watched<destroy_qp>();
    made.destroy_srq = watched<destroy_srq>();
    made.modify_qp = watched<modify_qp>();
    made.modify_srq = watched<modify_srq>();
    made.poll_cq = watched<poll_cq>();
    made.post_recv = watched<post_recv>();
    made.post_send = watched<post_send>();
    made.post_srq_ops = watched<post_srq_ops>();
    made.post_srq_recv = watched<post_srq_recv>();
    made.req_notify_cq = watched<req_notify_cq>();
    return made;
  }();
  return table;
}

}  // namespace dapple::soft::hang

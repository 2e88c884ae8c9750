// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/causes.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "provider/soft/hang/unacknowledged.hpp"

namespace dapple::soft::hang {
namespace {

using check::format;
using check::Level;
using check::number;
using check::Report;
using Armed = CompletionQueue::Armed;

constexpr size_t kMaxQueues = 4;  // that a report shows

std::string completions(uint32_t count) {
  return count == 1 ? "1 completion" : format("%u completions", count);
}

// "Thread 17 (worker) has waited for 5.0 s ".
std::string subject(const ThreadStack& thread, double seconds) {
  const std::string who =
      thread.thread == getpid() ? "The main thread" : format("Thread %d (%s)", thread.thread, thread.name.c_str());
  return who + format(" has waited for %.1f s ", seconds);
}

std::optional<Stack> stack_of(const std::optional<Arm>& arm) {
  return arm ? std::optional(arm->stack) : std::nullopt;
}

// The queue pairs that put their completions into one of these.
std::vector<const QpView*> users_of(const std::vector<const CqView*>& cqs, const View& view) {
  std::vector<const QpView*> users;
  for (const QpView& qp : view.qps) {
    const bool uses = std::any_of(cqs.begin(), cqs.end(),
                                  [&](const CqView* cq) { return qp.send_cq == cq->cq || qp.recv_cq == cq->cq; });
    if (uses) users.push_back(&qp);
  }
  return users;
}

void add_place(Report& report, const char* title, const std::optional<Stack>& stack) {
  if (stack) report.places.push_back({title, *stack});
}

// A queue whose completions the thread does not see, since no event tells of them.
std::optional<Report> without_event(const CqView& cq, Report report, const std::string& begin) {
  if (cq.there == 0) return std::nullopt;
  const std::string queue = "a completion queue of " + cq.device;
  if (!cq.note.arm) {
    report.kind = "unarmed-cq";
    report.text = begin + "for an event of " + queue + ", which has " + completions(cq.there) +
                  ", but the program has never armed the queue.";
    report.remedy = "Call ibv_req_notify_cq() before the thread sleeps, and poll once more after it.";
  } else if (cq.armed == Armed::kNo) {
    // The event came, and nobody has armed the queue since.
    report.kind = "unarmed-cq";
    report.text = begin + "for another event of " + queue + ", which has " + completions(cq.there) +
                  ", but the program has not armed the queue again after its last event.";
    report.remedy = "Call ibv_req_notify_cq() again after each event, and then poll until the queue is empty.";
  } else if (cq.armed == Armed::kSolicited && cq.note.arm->there == 0) {
    // Completions of its own requests may wait there on purpose.
    if (cq.received == 0) return std::nullopt;
    report.kind = "solicited-only";
    report.text = begin + "for an event of " + queue + ", which has " + completions(cq.there) +
                  ", but the queue was armed with solicited_only, and no message had IBV_SEND_SOLICITED.";
    report.remedy = "Call ibv_req_notify_cq() with 0 for solicited_only, or send the messages with IBV_SEND_SOLICITED.";
  } else {
    // A completion that comes to an armed queue disarms it. So these came before.
    report.kind = "lost-notification";
    report.text = begin + "for an event of " + queue + ", which has " + completions(cq.there) +
                  " that came before the program armed it, and an armed queue tells only of those that come later.";
    report.remedy = "Poll after each ibv_req_notify_cq() until the queue is empty, before the thread sleeps.";
  }
  if (cq.note.arm) report.places.push_back({"armed by ibv_req_notify_cq", cq.note.arm->stack});
  if (!cq.note.got.last.empty() && cq.armed == Armed::kNo)
    report.places.push_back({"the last event was got", cq.note.got.last.back()});
  report.places.push_back({"the queue was made by ibv_create_cq", cq.note.made});
  return report;
}

// The completions that the queue pairs of empty completion queues may still bring.
struct Outlook {
  uint64_t sends = 0, receives = 0;  // that will complete, if the peer goes on
  const QpView* silent = nullptr;    // its last request was not signaled
  const QpView* reset = nullptr;     // it has lost requests
};

bool holds(const std::vector<const CqView*>& cqs, const ibv_cq* cq) {
  return std::any_of(cqs.begin(), cqs.end(), [cq](const CqView* each) { return each->cq == cq; });
}

Outlook outlook_of(const std::vector<const CqView*>& cqs, const View& view) {
  Outlook outlook;
  for (const QpView* qp : users_of(cqs, view)) {
    if (holds(cqs, qp->recv_cq)) outlook.receives += qp->receives;
    // Its requests complete elsewhere.
    if (!holds(cqs, qp->send_cq)) continue;
    outlook.sends += qp->outstanding;
    if (qp->outstanding == 0 && !qp->note.sends.empty() && !qp->note.sends.back().signaled) outlook.silent = qp;
    if (qp->note.lost && qp->note.lost->sends != 0 && qp->note.sends.empty()) outlook.reset = qp;
  }
  return outlook;
}

Report of_lost_sends(const QpView& qp, Report report, const std::string& begin) {
  const Lost& lost = *qp.note.lost;
  report.kind = "lost-at-reset";
  report.text = begin + format(
                            "for a completion of queue pair 0x%x of %s, whose change to IBV_QPS_RESET has dropped "
                            "%llu send requests: they complete no more.",
                            qp.qpn, qp.device.c_str(), number(lost.sends));
  report.remedy = "Post the requests again after the queue pair is in IBV_QPS_RTS.";
  add_place(report, "the oldest of them was posted", lost.send);
  report.places.push_back({"dropped by ibv_modify_qp", lost.reset});
  return report;
}

Report of_silent(const QpView& qp, Report report, const std::string& begin) {
  report.kind = "unsignaled-request";
  report.text = begin + format(
                            "for a completion of queue pair 0x%x of %s, but the device has carried out all requests, "
                            "and the last one asked for no completion.",
                            qp.qpn, qp.device.c_str());
  report.remedy = "Set IBV_SEND_SIGNALED in send_flags of the request, or sq_sig_all for the queue pair.";
  report.places.push_back({"the last request was posted", qp.note.sends.back().stack});
  return report;
}

// The other completion queue of a queue pair has what the thread may wait for. Empty if there is none.
std::optional<Report> of_other_queue(const std::vector<const CqView*>& cqs, Report report, const std::string& begin,
                                     const View& view) {
  for (const QpView* qp : users_of(cqs, view)) {
    const bool receives = !holds(cqs, qp->recv_cq);
    const CqView* other = view.find(receives ? qp->recv_cq : qp->send_cq);
    if (other == nullptr || other->there == 0 || holds(cqs, other->cq)) continue;
    const char* const name = receives ? "recv_cq" : "send_cq";
    report.text = begin + format(
                              "for a completion of a queue into which nothing can come, and the %s of queue pair 0x%x "
                              "of %s is another queue, which has %s.",
                              name, qp->qpn, qp->device.c_str(), completions(other->there).c_str());
    report.remedy = format("Poll the %s of the queue pair for the completions of its %s.", name,
                           receives ? "receives" : "send requests");
    report.places.push_back({"that queue was made by ibv_create_cq", other->note.made});
    report.places.push_back({"the queue pair was made by ibv_create_qp", qp->note.made});
    return report;
  }
  return std::nullopt;
}

// What is wrong with the peers of queue pairs whose requests have no answer.
void add_silence(const std::vector<const CqView*>& cqs, const View& view, Report& report) {
  for (const QpView* qp : users_of(cqs, view)) {
    if (qp->outstanding == 0 || !holds(cqs, qp->send_cq)) continue;
    if (!qp->silence.text.empty()) {
      report.text += format(" The peer of queue pair 0x%x does not answer: %s.", qp->qpn, qp->silence.text.c_str());
      report.remedy = qp->silence.remedy;
    }
    if (qp->is_patient)
      report.text += format(" The timeout of queue pair 0x%x is 0, so its requests never fail.", qp->qpn);
    if (!qp->silence.text.empty()) return;
  }
}

// The thread waits for completions of queues that are all empty.
Report of_empty(const std::vector<const CqView*>& cqs, Report report, const std::string& begin, const View& view) {
  const Outlook all = outlook_of(cqs, view);
  if (all.sends + all.receives == 0) {
    report.level = Level::kError;
    if (all.reset != nullptr) return of_lost_sends(*all.reset, report, begin);
    if (all.silent != nullptr) return of_silent(*all.silent, report, begin);
    report.level = Level::kWarning;
    if (const std::optional<Report> other = of_other_queue(cqs, report, begin, view)) return *other;
    report.text = begin + "for a completion, but its queue pairs have no request and no receive that could complete.";
    report.remedy = "Post a request or a receive before the thread waits for its completion.";
    for (const CqView* cq : cqs) report.places.push_back({"the queue was made by ibv_create_cq", cq->note.made});
    return report;
  }
  report.text = begin + format("for a completion: %llu send requests and %llu receives wait for the peer.",
                               number(all.sends), number(all.receives));
  const std::string waiting = report.text;
  report.remedy = "Look at what the peer waits for.";
  add_silence(cqs, view, report);
  if (report.text == waiting) report.text += " Nothing is wrong that dapple can see here.";
  if (all.silent != nullptr) {
    report.text += format(" The last request of queue pair 0x%x asked for no completion.", all.silent->qpn);
    report.places.push_back({"the last request was posted", all.silent->note.sends.back().stack});
  }
  return report;
}

// The thread waits by epoll, which does not tell again of an event that the program has left in the channel. Another
// thread may yet read it. Empty if there is none.
std::optional<Report> of_unread(const std::vector<const CqView*>& cqs, const Wait& wait, Report report,
                                const std::string& begin, const View& view) {
  const auto unread = std::find_if(cqs.begin(), cqs.end(), [](const CqView* cq) { return cq->unread; });
  if (unread == cqs.end() || wait.system_function.find("epoll") == std::string::npos) return std::nullopt;
  if (view.threads == 1) {
    report.level = Level::kError;
    report.kind = "lost-notification";
  }
  report.text = begin +
                "by epoll for an event of a completion channel, in which an event waits that the program has not read. "
                "With EPOLLET or EPOLLONESHOT epoll tells of it only once.";
  report.remedy =
      "Call ibv_get_cq_event() after each EPOLLIN until it fails with EAGAIN (with O_NONBLOCK), or wait without "
      "EPOLLET.";
  for (const CqView* cq : cqs) {
    if (report.places.size() > kMaxQueues) break;
    if (!cq->note.got.last.empty()) report.places.push_back({"the last event was got", cq->note.got.last.back()});
  }
  report.places.push_back({"a queue of the channel was made by ibv_create_cq", (*unread)->note.made});
  return report;
}

// Events that `cqs` of a channel should give.
void of_channel(const std::vector<const CqView*>& cqs, const Report& report, const std::string& begin, const View& view,
                std::vector<Report>& found) {
  // A program may poll the others when an event of these has come.
  std::vector<const CqView*> armed;
  std::copy_if(cqs.begin(), cqs.end(), std::back_inserter(armed),
               [](const CqView* cq) { return cq->armed != Armed::kNo; });
  const std::vector<const CqView*>& expected = armed.empty() ? cqs : armed;
  const size_t before = found.size();
  for (const CqView* cq : expected) {
    if (std::optional<Report> one = without_event(*cq, report, begin)) found.push_back(*one);
  }
  for (size_t i = before; i < found.size(); i++) found[i].level = Level::kError;
  if (found.size() != before) return;
  if (!armed.empty()) {
    found.push_back(of_empty(armed, report, begin, view));
    return;
  }
  Report one = report;
  one.text = begin + "for an event, but no completion queue of the channel is armed. They are all empty.";
  one.remedy = "Call ibv_req_notify_cq() before the thread sleeps, unless another thread does so.";
  for (const CqView* cq : cqs) add_place(one, "armed last by ibv_req_notify_cq", stack_of(cq->note.arm));
  found.push_back(one);
}

// The thread waits for an event of a channel that no completion queue has. Another thread may yet make one.
Report of_no_queue(Report report, const std::string& begin, const View& view) {
  if (view.threads == 1) {
    report.level = Level::kError;
    report.kind = "unarmed-cq";
  }
  report.text = begin + "for an event of a completion channel that no completion queue has, so no event can come.";
  report.remedy =
      "Give the channel to ibv_create_cq(), and wait for events of the channel that the completion queue has.";
  size_t shown = 0;
  for (const CqView& cq : view.cqs) {
    if (cq.note.ends) continue;
    if (shown++ == kMaxQueues) break;
    const bool has_channel = cq.channel >= 0;
    report.places.push_back({has_channel ? "a completion queue with another channel was made by ibv_create_cq"
                                         : "a completion queue without a channel was made by ibv_create_cq",
                             cq.note.made});
    if (!has_channel) add_place(report, "it was armed by ibv_req_notify_cq, in vain", stack_of(cq.note.arm));
  }
  return report;
}

// The limits of shared receive queues that the program has not armed again.
void of_limits(const Wait& wait, const Report& report, const std::string& begin, const View& view,
               std::vector<Report>& found) {
  for (const SrqView& srq : view.srqs) {
    const bool is_waited_for =
        std::find(wait.descriptors.begin(), wait.descriptors.end(), srq.events) != wait.descriptors.end();
    if (!is_waited_for || !srq.note.limit || srq.limit != 0 || srq.note.got.count == 0) continue;
    if (srq.receives >= srq.note.limit_value) continue;
    Report one = report;
    one.level = Level::kError;
    one.kind = "unarmed-srq-limit";
    one.text = begin + format(
                           "for an event of a shared receive queue of %s, which has %u receives, but its limit came "
                           "and was not armed again: srq_limit is 0.",
                           srq.device.c_str(), srq.receives);
    one.remedy = "Call ibv_modify_srq() with IBV_SRQ_LIMIT after each IBV_EVENT_SRQ_LIMIT_REACHED.";
    one.places.push_back({"armed before by ibv_modify_srq", *srq.note.limit});
    one.places.push_back({"the last event was got", srq.note.got.last.back()});
    found.push_back(one);
  }
}

}  // namespace

std::vector<Report> explain(const ThreadStack& thread, const Wait& wait, const View& view, double seconds) {
  std::vector<Report> found;
  const std::string begin = subject(thread, seconds);
  Report report = {.level = Level::kWarning, .kind = "hang", .text = {}, .remedy = {}, .places = {}};
  report.places.push_back({"waits", thread.stack});
  if (wait.destroys()) {
    found = unacknowledged(thread, wait, view, report, begin);
    if (!found.empty()) return found;
  }
  std::vector<const CqView*> cqs;
  for (const CqView& cq : view.cqs) {
    const bool is_watched =
        std::find(wait.descriptors.begin(), wait.descriptors.end(), cq.channel) != wait.descriptors.end();
    if (cq.channel >= 0 && is_watched) cqs.push_back(&cq);
  }
  of_limits(wait, report, begin, view, found);
  const bool knows_channel = wait.function == "ibv_get_cq_event" && !wait.descriptors.empty();
  if (cqs.empty() && knows_channel && !view.cqs.empty()) {
    found.push_back(of_no_queue(report, begin, view));
  } else if (!cqs.empty()) {
    if (const std::optional<Report> unread = of_unread(cqs, wait, report, begin, view))
      found.push_back(*unread);
    else
      of_channel(cqs, report, begin, view, found);
  } else if (wait.function.empty()) {
    std::vector<const CqView*> polled;
    for (const ibv_cq* cq : wait.polled) {
      if (const CqView* one = view.find(cq); one != nullptr) polled.push_back(one);
    }
    report.places[0].title = polled.empty() ? "waits" : "polls";
    if (!polled.empty()) found.push_back(of_empty(polled, report, begin, view));
  }
  if (!found.empty()) return found;
  const std::string& what = wait.function.empty() ? wait.system_function : wait.function;
  report.text = begin + (what.empty() ? "for something outside of the libraries of RDMA. " : "in " + what + "(). ");
  if (view.owes_answers && wait.function.starts_with("rdma_")) {
    report.text += "A peer waits for the program's answer, as another report says.";
    report.remedy = "Answer it before the thread waits.";
  } else {
    report.text += "Nothing is wrong that dapple can see here.";
    report.remedy = "Look at what should end the wait.";
  }
  found.push_back(report);
  return found;
}

bool may_be_not_ready(const View& view) {
  return std::any_of(view.qps.begin(), view.qps.end(),
                     [](const QpView& qp) { return qp.naks != 0 && qp.receives == 0; });
}

std::vector<Report> not_ready(const View& before, const View& view) {
  std::vector<Report> found;
  for (const QpView& qp : view.qps) {
    const auto earlier =
        std::find_if(before.qps.begin(), before.qps.end(), [&](const QpView& each) { return each.qpn == qp.qpn; });
    if (qp.receives != 0 || qp.note.lost || earlier == before.qps.end() || qp.naks <= earlier->naks) continue;
    Report report = {.level = Level::kError,
                     .kind = "receiver-not-ready",
                     .text = format("Queue pair 0x%x of %s has no receive for a message of its peer, which tries it "
                                    "again and again (%llu RNR NAKs so far).",
                                    qp.qpn, qp.device.c_str(), number(qp.naks)),
                     .remedy = "Post receives before the peer sends.",
                     .places = {{"the queue pair was made by ibv_create_qp", qp.note.made}}};
    if (!qp.note.receives.empty()) report.places.push_back({"the last receive was posted", qp.note.receives.back()});
    found.push_back(report);
  }
  return found;
}

std::vector<Report> lost_receives(const View& view) {
  std::vector<Report> found;
  for (const QpView& qp : view.qps) {
    if (!qp.note.lost || qp.note.lost->receives == 0 || qp.receives != 0 || !qp.note.receives.empty()) continue;
    if (qp.naks <= qp.note.lost->naks) continue;
    Report report = {
        .level = Level::kError,
        .kind = "lost-at-reset",
        .text = format("Queue pair 0x%x of %s tells its peer that it has no receive (%llu RNR NAKs), since its change "
                       "to IBV_QPS_RESET has dropped %llu receives.",
                       qp.qpn, qp.device.c_str(), number(qp.naks - qp.note.lost->naks), number(qp.note.lost->receives)),
        .remedy = "Post the receives again after the change to IBV_QPS_RESET.",
        .places = {}};
    add_place(report, "the oldest of them was posted", qp.note.lost->receive);
    report.places.push_back({"dropped by ibv_modify_qp", qp.note.lost->reset});
    report.places.push_back({"the queue pair was made by ibv_create_qp", qp.note.made});
    found.push_back(report);
  }
  return found;
}

}  // namespace dapple::soft::hang

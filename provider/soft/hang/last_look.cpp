// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/last_look.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "provider/common/clock.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/hang/view.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::hang {
namespace {

constexpr uint64_t kLong = 500'000'000;  // nanoseconds
constexpr uint64_t kManyNaks = 20;

// True if the queue has got no completion of this queue pair, because the program has asked for none. `note` has all
// requests only if there are fewer than the send queue has room for.
bool asks_for_nothing(const Qp& qp, const QpNote& note) {
  const auto is_signaled = [](const NotedSend& send) { return send.signaled; };
  return qp.srq == nullptr && note.receives.empty() && note.sends.size() < qp.init.cap.max_send_wr &&
         std::none_of(note.sends.begin(), note.sends.end(), is_signaled);
}

// True if a peer outside of the process may have told the program something by a Write into its memory. Only the check
// sees the Writes.
bool may_be_told_by_write(Notes& notes) {
  if (check::Checker::get() == nullptr) return true;
  const View view = look(notes, false);
  return std::any_of(view.qps.begin(), view.qps.end(), [&](const QpView& qp) {
    const auto is_peer = [&](const QpView& other) { return other.qpn == qp.peer && other.peer == qp.qpn; };
    return qp.was_written && std::none_of(view.qps.begin(), view.qps.end(), is_peer);
  });
}

std::optional<check::Report> polled_in_vain(Notes& notes, const Qp& qp) {
  std::optional<check::Report> report;
  notes.change([&](const Notes::Tables& tables) {
    const auto found = tables.pollers.find(gettid());
    const auto own = tables.qps.find(const_cast<Qp*>(&qp));
    if (found == tables.pollers.end() || own == tables.qps.end() || own->second.sends.empty()) return;
    const Poller& poller = found->second;
    if (poller.cqs.size() != 1 || poller.last_ns - poller.since_ns < kLong) return;
    if (poller.cqs.front() != reinterpret_cast<const ibv_cq*>(qp.send_cq)) return;
    for (const auto& [other, note] : tables.qps) {
      const bool uses = other->send_cq == qp.send_cq || other->recv_cq == qp.send_cq;
      if (uses && !asks_for_nothing(*other, note)) return;
    }
    const double seconds = static_cast<double>(poller.last_ns - poller.since_ns) / 1e9;
    report = {.level = check::Level::kWarning,
              .kind = "unsignaled-request",
              .text = check::format("The program has polled a completion queue of %s for %.1f s in vain: no request of "
                                    "its queue pairs has asked for a completion, and they have no receive.",
                                    qp.context->ibv->device->name, seconds),
              .remedy = "Set IBV_SEND_SIGNALED in send_flags of the request, or sq_sig_all for the queue pair.",
              .places = {{"the last request was posted", own->second.sends.back().stack}}};
  });
  // The program may have polled for errors alone.
  return report && may_be_told_by_write(notes) ? std::nullopt : report;
}

// True if no request and no receive of the program can complete into this queue.
bool is_dry(const ibv_cq* cq, const View& view) {
  return std::none_of(view.qps.begin(), view.qps.end(), [&](const QpView& qp) {
    return (qp.send_cq == cq && qp.outstanding != 0) || (qp.recv_cq == cq && qp.receives != 0);
  });
}

// The thread polled the queue pair's one completion queue, and nobody has ever polled the other one.
std::optional<check::Report> polled_the_other(Notes& notes, const Qp& qp) {
  if (qp.send_cq == nullptr || qp.recv_cq == nullptr || qp.send_cq == qp.recv_cq) return std::nullopt;
  std::optional<Poller> poller;
  notes.change([&](const Notes::Tables& tables) {
    const auto found = tables.pollers.find(gettid());
    if (found != tables.pollers.end()) poller = found->second;
  });
  if (!poller || poller->cqs.size() != 1 || poller->last_ns - poller->since_ns < kLong) return std::nullopt;
  const ibv_cq* const polled = poller->cqs.front();
  const bool is_sends = polled == &qp.send_cq->abi.cq;
  if (!is_sends && polled != &qp.recv_cq->abi.cq) return std::nullopt;
  Cq& other = is_sends ? *qp.recv_cq : *qp.send_cq;
  if (other.was_polled.load(std::memory_order_relaxed)) return std::nullopt;
  uint32_t there = 0;
  other.queue.look([&](const roce::Completion& completion) { there += completion.qpn == qp.qpn ? 1 : 0; });
  const View view = look(notes, false);
  const CqView* const unpolled = view.find(&other.abi.cq);
  if (there == 0 || unpolled == nullptr || !is_dry(polled, view) || may_be_told_by_write(notes)) return std::nullopt;
  const char* const names[] = {"send_cq", "recv_cq"};
  return check::Report{
      .level = check::Level::kWarning,
      .kind = "unpolled-cq",
      .text =
          check::format("The program has polled the %s of queue pair 0x%x of %s for %.1f s in vain, since nothing "
                        "can come into it, and %u completions of the queue pair wait in its %s, which has never "
                        "been polled.",
                        names[is_sends ? 0 : 1], qp.qpn, qp.context->ibv->device->name,
                        static_cast<double>(poller->last_ns - poller->since_ns) / 1e9, there, names[is_sends ? 1 : 0]),
      .remedy = is_sends ? "Poll the recv_cq of the queue pair for the completions of its receives."
                         : "Poll the send_cq of the queue pair for the completions of its send requests.",
      .places = {{"that queue was made by ibv_create_cq", unpolled->note.made}, {"destroyed", check::here()}}};
}

// The place of the last receive that the queue pair could use.
std::optional<check::Stack> last_receive(Notes& notes, const Qp& qp, const QpNote& note) {
  if (qp.srq == nullptr)
    return note.receives.empty() ? std::nullopt : std::optional<check::Stack>(note.receives.back());
  std::optional<check::Stack> last;
  notes.change([&](const Notes::Tables& tables) {
    const auto found = tables.srqs.find(qp.srq);
    if (found != tables.srqs.end() && found->second.receive) last = *found->second.receive;
  });
  return last;
}

// A message of the peer has waited for a receive until now. If there are receives that the program has not polled, it
// has stopped looking at messages on purpose.
bool is_kept_waiting(const QpView& view) {
  return view.unready_since_ns != 0 && now_ns() - view.unready_since_ns >= kLong && view.receives == 0 &&
         !view.has_unpolled_receives;
}

// The queue pair had many messages of its peer, or one that came again and again.
std::optional<check::Report> never_ready(Notes& notes, Qp& qp) {
  if (qp.init.qp_type != IBV_QPT_RC) return std::nullopt;
  for (const QpView& view : look_at(notes, qp).qps) {
    const std::optional<check::Stack> last = last_receive(notes, qp, view.note);
    const bool had_none = qp.srq == nullptr && !last && view.naks >= kManyNaks;
    if (view.note.lost || (!had_none && !is_kept_waiting(view))) continue;
    std::string text = check::format(
        "Queue pair 0x%x of %s has told its peer %llu times that it has no receive (RNR "
        "NAKs), and the program has %s.",
        view.qpn, view.device.c_str(), check::number(view.naks), last ? "not posted another one" : "never posted one");
    std::string remedy = "Post a receive for each message, before the peer can send it.";
    if (qp.srq != nullptr) {
      text += " Its shared receive queue is empty.";
      remedy = "Post a receive to the shared receive queue for each one that a message has used.";
    }
    if (view.min_rnr_timer == 0)
      remedy += " Set min_rnr_timer, too: 0 lets the peer wait for 655 ms after each such answer.";
    check::Report report = {.level = check::Level::kWarning,
                            .kind = "receiver-not-ready",
                            .text = text,
                            .remedy = remedy,
                            .places = {{"destroyed", check::here()}, {"the queue pair was made", view.note.made}}};
    if (last) report.places.push_back({"the last receive was posted", *last});
    return report;
  }
  return std::nullopt;
}

}  // namespace

std::vector<check::Report> last_look(Notes& notes, Qp& qp) {
  std::vector<check::Report> reports;
  for (const std::optional<check::Report>& report :
       {polled_in_vain(notes, qp), polled_the_other(notes, qp), never_ready(notes, qp)}) {
    if (report) reports.push_back(*report);
  }
  return reports;
}

}  // namespace dapple::soft::hang

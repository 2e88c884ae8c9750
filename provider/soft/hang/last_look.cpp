// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/last_look.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

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

// The queue pair had many messages of its peer, or one that came again and again.
std::optional<check::Report> never_ready(Notes& notes, Qp& qp) {
  if (qp.init.qp_type != IBV_QPT_RC || qp.srq != nullptr) return std::nullopt;
  for (const QpView& view : look_at(notes, qp).qps) {
    if (view.naks < kManyNaks || view.note.lost || !view.note.receives.empty()) continue;
    return check::Report{
        .level = check::Level::kWarning,
        .kind = "receiver-not-ready",
        .text =
            check::format("Queue pair 0x%x of %s has told its peer %llu times that it has no receive (RNR NAKs), and "
                          "the program has never posted one.",
                          view.qpn, view.device.c_str(), check::number(view.naks)),
        .remedy = "Post a receive for each message, before the peer can send it.",
        .places = {{"destroyed", check::here()}, {"the queue pair was made", view.note.made}}};
  }
  return std::nullopt;
}

}  // namespace

std::vector<check::Report> last_look(Notes& notes, Qp& qp) {
  std::vector<check::Report> reports;
  for (const std::optional<check::Report>& report : {polled_in_vain(notes, qp), never_ready(notes, qp)}) {
    if (report) reports.push_back(*report);
  }
  return reports;
}

}  // namespace dapple::soft::hang

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/unacknowledged.hpp"

#include <algorithm>
#include <string_view>

#include "provider/soft/hang/notes/cm_notes.hpp"

namespace dapple::soft::hang {
namespace {

using check::format;
using check::Level;
using check::Report;

constexpr char kAckCqEvents[] = "ibv_ack_cq_events()";
constexpr char kAckAsyncEvent[] = "ibv_ack_async_event()";

// `count`: how many of the events that the program has got it has not acknowledged.
void report_object(const char* what, const std::string& device, const GotEvents& got, int32_t count,
                   const char* acknowledge, Report report, const std::string& begin, std::vector<Report>& found) {
  if (count == 0) return;
  report.level = Level::kError;
  report.kind = "unacknowledged-event";
  const std::string object = begin + format("to destroy %s of %s, but the program has ", what, device.c_str());
  if (count < 0) {
    const uint64_t acknowledged = got.count + static_cast<uint64_t>(-int64_t{count});
    report.text = object + format("acknowledged %llu of its events, and has got %llu.", check::number(acknowledged),
                                  check::number(got.count));
    report.remedy =
        format("Call %s once for each event that the program gets, with the object of that event.", acknowledge);
    if (std::string_view(acknowledge) == kAckCqEvents)
      report.remedy += " The second argument is the number of events, not of completions.";
  } else {
    report.text = object + format("not acknowledged %d of its events.", count);
    report.remedy = format("Call %s for each event that the program gets, before it destroys the object.", acknowledge);
  }
  const size_t shown = std::min<uint64_t>(count < 0 ? got.last.size() : count, got.last.size());
  for (size_t i = got.last.size() - shown; i < got.last.size(); i++) {
    // Events that one line has got have one place.
    const bool is_known = std::any_of(report.places.begin(), report.places.end(), [&](const ReportedStack& place) {
      return check::bytes_of(place.stack) == check::bytes_of(got.last[i]);
    });
    if (!is_known) report.places.push_back({"the event was got", got.last[i]});
  }
  found.push_back(report);
}

const void* id_of(const provider::CmEventNotes& notes, int thread) {
  for (const auto& ending : notes.endings) {
    if (ending.thread.load() == thread) return ending.id.load();
  }
  return nullptr;
}

void report_id(const ThreadStack& thread, const Report& report, const std::string& begin, std::vector<Report>& found) {
  const provider::CmEventNotes* notes = cm_notes();
  const void* id = notes == nullptr ? nullptr : id_of(*notes, thread.thread);
  if (id == nullptr) return;
  for (const provider::CmEventNote& note : notes->events) {
    if (!note.is_complete.load(std::memory_order_acquire) || (note.id != id && note.listener != id)) continue;
    Report one = report;
    one.level = Level::kError;
    one.kind = "unacknowledged-event";
    one.text = begin + "to destroy an rdma_cm_id, but the program has not acknowledged an event of this id.";
    one.remedy = "Call rdma_ack_cm_event() for each event before rdma_destroy_id().";
    one.places.push_back({"the event was got by rdma_get_cm_event", note.got});
    found.push_back(one);
  }
}

}  // namespace

std::vector<Report> unacknowledged(const ThreadStack& thread, const Wait& wait, const View& view, const Report& report,
                                   const std::string& begin) {
  std::vector<Report> found;
  if (wait.function.find("_id") != std::string::npos || wait.function.find("_ep") != std::string::npos)
    report_id(thread, report, begin, found);
  if (!found.empty()) return found;
  for (const CqView& cq : view.cqs) {
    if (!cq.note.ends) continue;
    const char* const what = "a completion queue";
    report_object(what, cq.device, cq.note.got, cq.not_acknowledged, kAckCqEvents, report, begin, found);
    report_object(what, cq.device, cq.note.got_errors, cq.errors_not_acknowledged, kAckAsyncEvent, report, begin,
                  found);
  }
  for (const QpView& qp : view.qps) {
    if (!qp.note.ends) continue;
    const std::string name = format("queue pair 0x%x", qp.qpn);
    report_object(name.c_str(), qp.device, qp.note.got, qp.not_acknowledged, kAckAsyncEvent, report, begin, found);
  }
  for (const SrqView& srq : view.srqs) {
    if (!srq.note.ends) continue;
    report_object("a shared receive queue", srq.device, srq.note.got, srq.not_acknowledged, kAckAsyncEvent, report,
                  begin, found);
  }
  return found;
}

uint64_t cm_events() {
  return cm_notes() == nullptr ? 0 : cm_notes()->count.load(std::memory_order_relaxed);
}

}  // namespace dapple::soft::hang

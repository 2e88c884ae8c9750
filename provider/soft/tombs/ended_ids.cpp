// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/ended_ids.hpp"

#include <stdlib.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "provider/common/fault.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/explain/refused_calls.hpp"
#include "provider/soft/tombs/tombs.hpp"

namespace dapple::soft::tombs {
namespace {

constexpr size_t kMaxShown = 64;

bool has_ended(const void* id, const char* function) {
  return Tombs::get().report_if_ended(id, function);
}

// The functions that end an object.
struct End {
  std::string_view function;
  const char* object;
  const char* title;
};
constexpr End kEnds[] = {
    {"rdma_destroy_id", "rdma_cm_id", "destroyed by rdma_destroy_id"},
    {"rdma_destroy_ep", "rdma_cm_id", "destroyed by rdma_destroy_ep"},
    {"rdma_destroy_event_channel", "rdma_event_channel", "destroyed by rdma_destroy_event_channel"},
    {"ibv_destroy_comp_channel", "completion channel", "destroyed by ibv_destroy_comp_channel"},
    {"rdma_ack_cm_event", "rdma_cm_event", "acknowledged by rdma_ack_cm_event"},
};

void ended(const void* object, const char* function) {
  check::Checker::get()->objects.remove(object);
  for (const End& end : kEnds) {
    if (end.function != function) continue;
    const std::string name = check::format("the %s at %p", end.object, object);
    Tombs::get().add(object, {.name = name, .verb = function, .places = {{end.title, check::here()}}});
  }
}

void touched(const void* event, uintptr_t place) {
  const std::optional<Tomb> tomb = Tombs::get().find(event);
  if (!tomb.has_value()) return;
  std::vector<check::ReportedStack> places = {{"used", provider::stack_of_fault(place)}};
  places.insert(places.end(), tomb->places.begin(), tomb->places.end());
  check::Checker::get()->reporter.show(
      {.kind = "used-after-destroy",
       .text = check::format("The program uses %s after %s(), which ends the event and its private data.",
                             tomb->name.c_str(), tomb->verb),
       .remedy = "Copy what the program needs of an event before rdma_ack_cm_event().",
       .places = places});
}

void requested(const void* id) {
  check::Checker::get()->objects.add(id, "got by rdma_get_cm_event for a connection request");
}

void report_busy_channel(const void* channel) {
  explain::report_busy("ibv_destroy_comp_channel() for the completion channel", channel,
                       {"completion queues have it.", "Destroy the completion queues first."});
}

void report_left_ids() {
  check::Checker& checker = *check::Checker::get();
  const void* ids[kMaxShown];
  const size_t count = check::loaded_heap()->ids_left_alone(ids, kMaxShown);
  // A single one may be a server's last connection.
  if (count < 2 || !checker.is_its_process()) return;
  std::vector<check::ReportedStack> places;
  for (size_t i = 0; i < std::min(count, kMaxShown); i++) {
    const std::optional<check::ReportedStack> made = checker.objects.made(ids[i]);
    const auto is_it = [&](const check::ReportedStack& place) {
      return check::bytes_of(place.stack) == check::bytes_of(made->stack);
    };
    if (made.has_value() && std::none_of(places.begin(), places.end(), is_it)) places.push_back(*made);
  }
  checker.reporter.show({.level = check::Level::kWarning,
                         .kind = "left-object",
                         .text = check::format("The program has not destroyed %zu ids of connection requests, whose "
                                               "connections ended before a later request came.",
                                               count),
                         .remedy = "Call rdma_destroy_id() for the id of each request, also after rdma_reject() and "
                                   "after RDMA_CM_EVENT_DISCONNECTED.",
                         .places = places});
}

void given_back(const void* id) {
  Tombs::get().remove(id);
}

}  // namespace

void watch_ids() {
  const Heap* heap = check::loaded_heap();
  if (heap == nullptr) return;
  static constexpr IdWatcher kWatcher = {ended, given_back, has_ended, touched, requested, report_busy_channel};
  heap->watch_ids(kWatcher);
  atexit(report_left_ids);
}

}  // namespace dapple::soft::tombs

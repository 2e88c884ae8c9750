// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/perfetto.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <vector>

namespace dapple::picture {
namespace {

// The viewers hang arrows on slices, so an instant gets a short one.
constexpr int64_t kInstantNs = 1000;
// Number of the "process" that has the wires. The kernel's numbers of processes are below.
constexpr uint32_t kWires = 1U << 30;

class Writer {
 public:
  explicit Writer(const Story& story) : story_(story) {}

  std::string text() {
    place_slices();
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    name_lanes();
    for (size_t i = 0; i < story_.items.size(); i++) slice(i);
    for (size_t i = 0; i < story_.arrows.size(); i++) arrow(i);
    for (const auto& [lane, changes] : waiting()) counter(lane, changes);
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  struct Slice {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  using Changes = std::multimap<int64_t, int>;

  void event(const Json& members) {
    text_ += (is_first_ ? "" : ",\n") + members.dump(-1, ' ', false, Json::error_handler_t::replace);
    is_first_ = false;
  }

  // In microseconds, from the beginning of the trace.
  double time(int64_t time_ns) const { return static_cast<double>(time_ns - story_.begin_ns) / 1000.0; }

  uint32_t process(size_t lane) const { return story_.lanes[lane].process == 0 ? kWires : story_.lanes[lane].process; }
  // A lane that is no thread has a number that no thread has.
  uint64_t thread(size_t lane) const {
    return story_.lanes[lane].thread == 0 ? kWires + lane : story_.lanes[lane].thread;
  }

  // Slices of a lane must not overlap in part: each ends when the next one begins. A packet is on the wire from its
  // sending to its arrival.
  void place_slices() {
    std::vector<std::vector<size_t>> of_lanes(story_.lanes.size());
    for (size_t i = 0; i < story_.items.size(); i++) of_lanes[story_.items[i].lane].push_back(i);
    slices_.resize(story_.items.size());
    for (std::vector<size_t>& items : of_lanes) {
      std::stable_sort(items.begin(), items.end(), [this](size_t one, size_t other) {
        return story_.items[one].begin_ns < story_.items[other].begin_ns;
      });
      Slice* before = nullptr;
      for (const size_t each : items) {
        const Item& item = story_.items[each];
        Slice& slice = slices_[each];
        slice.begin_ns = before == nullptr ? item.begin_ns : std::max(item.begin_ns, before->begin_ns + 1);
        // A completion stays in its queue for long, and others come meanwhile.
        const int64_t end_ns = item.kind == Kind::kCompletion ? item.begin_ns : item.end_ns;
        slice.end_ns = std::max(end_ns, slice.begin_ns + kInstantNs);
        if (before != nullptr) before->end_ns = std::min(before->end_ns, slice.begin_ns);
        before = &slice;
      }
    }
  }

  void name_lanes() {
    event({{"ph", "M"}, {"name", "process_name"}, {"pid", kWires}, {"args", {{"name", "wires"}}}});
    for (const Process& each : story_.processes) {
      const std::string name = each.program.empty() ? "process" : each.program;
      event({{"ph", "M"}, {"name", "process_name"}, {"pid", each.number}, {"args", {{"name", name}}}});
    }
    for (size_t i = 0; i < story_.lanes.size(); i++) {
      event({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", process(i)},
             {"tid", thread(i)},
             {"args", {{"name", story_.lanes[i].name}}}});
    }
  }

  void slice(size_t index) {
    const Item& item = story_.items[index];
    const Slice& slice = slices_[index];
    Json members = {{"ph", "X"},
                    {"name", item.name},
                    {"cat", name_of(item.kind)},
                    {"pid", process(item.lane)},
                    {"tid", thread(item.lane)},
                    {"ts", time(slice.begin_ns)},
                    {"dur", time(story_.begin_ns + slice.end_ns - slice.begin_ns)},
                    {"args", item.details}};
    if (item.bad) members["cname"] = "terrible";
    if (item.kind == Kind::kWait) members["cname"] = "grey";
    event(members);
  }

  void arrow(size_t index) {
    const auto& [from, to] = story_.arrows[index];
    const size_t ends[] = {from, to};
    const int64_t begin_ns = slices_[from].begin_ns;
    for (const size_t end : ends) {
      const Item& item = story_.items[end];
      const bool is_begin = end == from;
      Json members = {{"ph", is_begin ? "s" : "f"},
                      {"id", index + 1},
                      {"name", "request"},
                      {"cat", "request"},
                      {"pid", process(item.lane)},
                      {"tid", thread(item.lane)},
                      {"ts", time(is_begin ? begin_ns : std::max(begin_ns, slices_[to].begin_ns))}};
      if (!is_begin) members["bp"] = "e";
      event(members);
    }
  }

  // For each completion queue, when its number of completions that nobody has polled changes.
  std::map<size_t, Changes> waiting() const {
    std::map<size_t, Changes> changes;
    for (const Item& item : story_.items) {
      if (item.kind != Kind::kCompletion || item.end_ns == item.begin_ns) continue;
      changes[item.lane].emplace(item.begin_ns, 1);
      changes[item.lane].emplace(item.end_ns, -1);
    }
    return changes;
  }

  void counter(size_t lane, const Changes& changes) {
    int count = 0;
    for (const auto& [time_ns, change] : changes) {
      count += change;
      event({{"ph", "C"},
             {"name", story_.lanes[lane].name + " not polled"},
             {"pid", process(lane)},
             {"ts", time(time_ns)},
             {"args", {{"completions", count}}}});
    }
    assert(count == 0);
  }

  const Story& story_;
  std::vector<Slice> slices_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace

std::string as_perfetto(const Story& story) {
  return Writer(story).text();
}

}  // namespace dapple::picture

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <string_view>

namespace dapple::picture {

std::string hex_text(uint64_t number) {
  return fmt::format("{:#x}", number);
}

size_t Stage::add(Kind kind, size_t lane, int64_t time_ns, std::string name) {
  assert(lane < story_.lanes.size());
  Item item;
  item.kind = kind;
  item.lane = lane;
  item.begin_ns = item.end_ns = time_ns;
  item.name = std::move(name);
  story_.items.push_back(std::move(item));
  return story_.items.size() - 1;
}

size_t Stage::add_line(Kind kind, size_t lane, const TraceLine& line, std::string name) {
  static const std::set<std::string_view> kShown = {"time", "process", "thread", "call", "event", "took"};
  const size_t index = add(kind, lane, line.time_ns, std::move(name));
  Item& added = item(index);
  added.qpn = static_cast<uint32_t>(line.number("qp"));
  added.cq = line.number("cq");
  added.end_ns += static_cast<int64_t>(std::min<uint64_t>(line.number("took"), INT32_MAX * uint64_t{1000}));
  added.bad = line.has("error");
  for (const auto& [name_of_member, value] : line.members.items())
    if (!kShown.contains(name_of_member)) added.details[name_of_member] = value;
  last_ends_ns_[lane] = added.end_ns;
  return index;
}

std::optional<int64_t> Stage::last_end_ns(size_t lane) const {
  const auto found = last_ends_ns_.find(lane);
  if (found == last_ends_ns_.end()) return std::nullopt;
  return found->second;
}

Process& Stage::process(uint32_t number) {
  const auto [entry, is_new] = processes_.try_emplace(number, story_.processes.size());
  if (is_new) story_.processes.push_back({number, {}});
  return story_.processes[entry->second];
}

size_t Stage::lane_of(uint32_t process_number, uint32_t thread, const std::string& name) {
  if (process_number != 0) process(process_number);
  const auto [entry, is_new] = lanes_.try_emplace(fmt::format("{}/{}", process_number, name), story_.lanes.size());
  if (is_new) story_.lanes.push_back({process_number, thread, name});
  return entry->second;
}

size_t Stage::thread_lane(const TraceLine& line) {
  const auto thread = static_cast<uint32_t>(line.number("thread"));
  return lane_of(static_cast<uint32_t>(line.number("process")), thread, fmt::format("thread {}", thread));
}

size_t Stage::lane(uint32_t process_number, const std::string& name) {
  return lane_of(process_number, 0, name);
}

void Stage::set_program(uint32_t process_number, const std::string& program) {
  process(process_number).program = program;
}

void Stage::connect(uint32_t qpn, uint32_t process_number, uint32_t other_qpn, uint32_t other_process) {
  assert(qpn != 0 && other_qpn != 0);
  const auto [entry, is_new] =
      connections_.try_emplace({std::min(qpn, other_qpn), std::max(qpn, other_qpn)}, story_.connections.size());
  if (is_new) story_.connections.push_back({{qpn, other_qpn}, {}});
  Connection& connection = story_.connections[entry->second];
  const size_t side = connection.qpns[0] == qpn ? 0 : 1;
  if (process_number != 0) connection.processes[side] = process_number;
  if (other_process != 0) connection.processes[1 - side] = other_process;
}

Story Stage::take() {
  if (!story_.items.empty()) {
    story_.begin_ns = story_.end_ns = story_.items.front().begin_ns;
    for (const Item& each : story_.items) {
      story_.begin_ns = std::min(story_.begin_ns, each.begin_ns);
      story_.end_ns = std::max(story_.end_ns, each.end_ns);
    }
  }
  story_.assert_consistent();
  return std::move(story_);
}

void Story::assert_consistent() const {
  for ([[maybe_unused]] const Item& item : items) {
    assert(item.lane < lanes.size());
    assert(item.begin_ns <= item.end_ns);
    assert(item.begin_ns >= begin_ns && item.end_ns <= end_ns);
  }
  for ([[maybe_unused]] const auto& [from, to] : arrows) {
    assert(from < items.size() && to < items.size());
    assert(from != to);
  }
}

}  // namespace dapple::picture

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A story in the making: items come in the order of time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/picture/story.hpp"
#include "tools/picture/trace_lines.hpp"

namespace dapple::picture {

class Stage {
 public:
  // An instant. Each member of the line that the lane or the name does not show becomes a detail.
  size_t add(Kind kind, size_t lane, int64_t time_ns, std::string name);
  size_t add_line(Kind kind, size_t lane, const TraceLine& line, std::string name);
  void arrow(size_t from, size_t to) { story_.arrows.emplace_back(from, to); }
  Item& item(size_t index) { return story_.items[index]; }
  // When the last line of this lane ended; none before the first.
  std::optional<int64_t> last_end_ns(size_t lane) const;

  size_t thread_lane(const TraceLine& line);
  size_t lane(uint32_t process, const std::string& name);
  void set_program(uint32_t process, const std::string& program);
  // For each pair once. A number of a process that is 0 may become known later.
  void connect(uint32_t qpn, uint32_t process, uint32_t other_qpn, uint32_t other_process);

  // Nothing may be added afterwards.
  Story take();

 private:
  Process& process(uint32_t number);
  size_t lane_of(uint32_t process, uint32_t thread, const std::string& name);

  Story story_;
  std::map<std::string, size_t> lanes_;
  std::map<size_t, int64_t> last_ends_ns_;
  std::map<uint32_t, size_t> processes_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> connections_;
};

// "0x1a021", as the trace has numbers.
std::string hex_text(uint64_t number);

}  // namespace dapple::picture

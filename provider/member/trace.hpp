// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_TRACE: the calls of a program to the device and their results, one JSON object a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "provider/records/record_file.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// One object. It begins with the time, on the clock of DAPPLE_PCAP, and with the process and thread. Names and texts
// are ours: nothing in them needs an escape. A member that finds no room is left out.
class TraceLine {
 public:
  TraceLine();
  TraceLine& text(const char* name, std::string_view value);
  TraceLine& number(const char* name, uint64_t value);
  TraceLine& signed_number(const char* name, int64_t value);
  // As a text, "0x11": JSON's numbers do not hold all addresses.
  TraceLine& hex(const char* name, uint64_t value);
  // "error": the errno's name or number; nothing for 0.
  TraceLine& error(int error);
  // The whole line. Nothing can be added afterwards.
  std::string_view end();

 private:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...);

  static constexpr size_t kEnd = 2;
  char text_[640];
  size_t used_ = 0;
};

// Several processes may append to one file. Any thread.
class Trace {
 public:
  // The file of DAPPLE_TRACE; "%p" in its name is the number of this process. Without DAPPLE_TRACE, false and no
  // problem.
  bool open(Problem& problem);
  void append(TraceLine& line);
  RecordFile& file() { return file_; }

 private:
  void begin();

  RecordFile file_;
};

}  // namespace dapple::soft

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The providers that programs for DAT 2.0 and for 1.2 find on this machine.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json.hpp"

namespace dapple::info {

struct DatEntry {
  std::string name;
  unsigned int major = 0;
  unsigned int minor = 0;
  bool thread_safe = false;
  std::string from;     // "/etc/dat.conf:12" or "automatic"
  std::string library;  // the library's name as the line has it, or its path if it was loaded
  std::string params;
  bool opens = false;
  std::string why;       // the reason why it does not open, in a line
  bool is_dead = false;  // a line for a device that this machine lacks, which was not tried
};

struct DatRegistry {
  std::string library;
  std::string problem;  // why the registry could not be asked; the file's entries are listed anyway
};

struct DatReport {
  DatRegistry registry;    // of 2.0
  DatRegistry registry12;  // of 1.2
  std::string conf_path;   // empty: no file
  std::vector<DatEntry> entries;
};

// Asks each registry in a child process, and opens each entry in another child process. Opens lines for devices that
// this machine lacks only if `all` is set. Reports malformed lines of the file on standard error.
DatReport read_dat(const std::string& registry, const std::string& registry12, bool all);

std::string dat_for_people(const DatReport& report);
Json dat_as_json(const DatReport& report);

}  // namespace dapple::info

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/runner.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string_view>

namespace dapple::run::doctor {
namespace {

constexpr int kMaxGenerations = 64;
// Without one of these a program has no device.
constexpr const char* kVariables[] = {"LD_PRELOAD", "RDMAV_DRIVERS"};
// The variables in which dapple-run's options go to programs.
constexpr const char* kChoices[] = {"DAPPLE_AS",    "DAPPLE_FAULTS", "DAPPLE_FAULTS_IN", "DAPPLE_GIDS",
                                    "DAPPLE_TRACE", "DAPPLE_PCAP",   "DAPPLE_SEED"};

bool names_dapple(std::string_view value) {
  return value.find("/libdapple") != value.npos;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Process {
  std::string name;
  pid_t parent = 0;
};

// The fields of /proc/PID/stat. The name may have any letters, also parentheses.
Process process_of(const std::string& folder) {
  const std::string text = contents(folder + "/stat");
  const size_t begin = text.find('('), end = text.rfind(')');
  // A letter for the state stands before the parent.
  if (begin == text.npos || end == text.npos || end + 4 >= text.size()) return {};
  return {text.substr(begin + 1, end - begin - 1), static_cast<pid_t>(atoi(text.c_str() + end + 4))};
}

// The value of a variable in an environment as /proc shows it.
std::string_view value_of(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) return entry.substr(name.size() + 1);
    environment.remove_prefix(entry.size() < environment.size() ? entry.size() + 1 : entry.size());
  }
  return {};
}

// The names of the variables that the environment has for dapple, and this process lacks.
std::string lost_from(std::string_view environment) {
  std::string lost;
  bool has_devices = false;
  const auto note = [&lost](std::string_view name) { lost.append(lost.empty() ? "" : " and ").append(name); };
  for (const char* name : kVariables) {
    if (!names_dapple(value_of(environment, name))) continue;
    has_devices = true;
    if (const char* own = getenv(name); own == nullptr || !names_dapple(own)) note(name);
  }
  if (!has_devices) return {};
  // Without one of these the devices are others than its user wanted.
  for (const char* name : kChoices) {
    if (!value_of(environment, name).empty() && getenv(name) == nullptr) note(name);
  }
  return lost;
}

}  // namespace

std::string variables_not_passed_on() {
  pid_t process = getppid();
  for (int i = 0; i < kMaxGenerations && process > 0; ++i) {
    const std::string folder = "/proc/" + std::to_string(process);
    const Process present = process_of(folder);
    if (const std::string lost = lost_from(contents(folder + "/environ")); !lost.empty())
      return "process " + std::to_string(process) + " (" + present.name + ") has dapple's variables, and " + lost +
             " did not come through to its programs here";
    process = present.parent;
  }
  return {};
}

}  // namespace dapple::run::doctor

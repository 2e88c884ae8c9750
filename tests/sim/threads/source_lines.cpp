// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/source_lines.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace dapple::sim {
namespace {

std::string module_file;

// "…/provider/soft/x.cpp:12 (discriminator 3)" without the root of the tree, or nothing for a file outside of it.
std::string in_tree(std::string line) {
  line = line.substr(0, line.find(" ("));
  while (!line.empty() && line.back() == '\n') line.pop_back();
  // A compiler's cache may have made the object in another folder. The compiler's own files are in none of these.
  for (const char* folder : {"/provider/", "/roce/", "/tests/sim/"}) {
    const size_t at = line.rfind(folder);
    if (at != std::string::npos) return line.substr(at + 1);
  }
  return {};
}

}  // namespace

void set_module_file(std::string path) {
  module_file = std::move(path);
}

std::vector<std::string> source_lines(const std::vector<uint64_t>& places) {
  std::map<uint64_t, std::string> lines;
  for (uint64_t place : places) {
    if (place != 0) lines[place];
  }
  if (!lines.empty() && !module_file.empty()) {
    char name[] = "/tmp/sim-places-XXXXXX";
    const int file = mkstemp(name);
    if (file >= 0) {
      FILE* list = fdopen(file, "w");
      for (const auto& [place, line] : lines) fprintf(list, "%#lx\n", place);
      fclose(list);
      // -a prints each address before its lines, the innermost first.
      const std::string command = "addr2line -a -i -e '" + module_file + "' < " + name + " 2>/dev/null";
      FILE* answers = popen(command.c_str(), "r");
      char line[1024];
      std::string* current = nullptr;
      while (answers != nullptr && fgets(line, sizeof line, answers) != nullptr) {
        if (strncmp(line, "0x", 2) == 0 && strchr(line, ':') == nullptr) {
          current = &lines[strtoull(line, nullptr, 16)];
        } else if (current != nullptr && current->empty()) {
          *current = in_tree(line);
        }
      }
      if (answers != nullptr) pclose(answers);
      unlink(name);
    }
  }
  std::vector<std::string> result;
  for (uint64_t place : places) result.push_back(place == 0 ? std::string() : lines[place]);
  return result;
}

}  // namespace dapple::sim

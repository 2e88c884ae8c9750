// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/remains.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace dapple::tests {
namespace {

// True if a file of /proc/net contains this text.
bool net_file_has(const char* path, const char* text) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != nullptr) found = strstr(line, text) != nullptr;
  fclose(file);
  return found;
}

}  // namespace

bool nothing_left() {
  return !net_file_has("/proc/net/unix", "@dapple") && !net_file_has("/proc/net/udp", ":12B7") &&
         !net_file_has("/proc/net/udp6", ":12B7");
}

bool ends_soon() {
  // A dappled whose DREQ was lost stays for six seconds to repeat it. A busy machine takes its time, too.
  for (int i = 0; i < 6000; i++) {
    if (nothing_left()) return true;
    usleep(10000);
  }
  return false;
}

}  // namespace dapple::tests
